"""The Lua scripts that run inside Redis, each atomic and on the keys of one agent, which share a cluster slot.

    rows    hash  id → value            clock   counter of changes
    log     zset  id → clock            epoch   token of the first write; another one means another history
    gone    zset  id → clock, removed   floor   clock up to which `gone` has been trimmed
    access  hash  id → count and time   step    the next step
    lent    set   ids of this agent's form that another agent uses

Steps are handled as decimal texts: Lua's numbers are exact only up to 2^53. A Redis that is short of memory may have
evicted some keys of an agent and not others; the rest of its rows is then removed, which starts another history."""

from __future__ import annotations

PARTS = ("rows", "log", "gone", "clock", "epoch", "floor", "step", "access", "lent")

_KEYS = f"local {', '.join(f'{name}_key' for name in PARTS)} = unpack(KEYS)\n"

_WHOLE = """
local rows_held, rows_listed = redis.call('HLEN', rows_key), redis.call('ZCARD', log_key)
local begun = redis.call('EXISTS', epoch_key, clock_key)
if begun == 1 or rows_held ~= rows_listed or (begun == 0 and rows_held > 0) then
  redis.call('DEL', rows_key, log_key, gone_key, clock_key, epoch_key, floor_key, access_key)
end
"""

_ACCESS = """
local function seen(id)
  local held = redis.call('HGET', access_key, id)
  if not held then return 0, 0 end
  local count, last = string.match(held, '^(%d+) (.+)$')
  return tonumber(count), tonumber(last)
end
local function note_access(id, count, last)
  redis.call('HSET', access_key, id, string.format('%.0f %.17g', count, last))
end
"""

# ARGV: a new token, the agent, and six for each memory: id or '', step or '', second of its time, the clock at which
# it must still be or '', 'count last' of its accesses or '', body. Answers false when one is not where it must be,
# or {epoch, clock before, id, step, born, id, step, born, …}.
PUT = (
    _KEYS
    + _WHOLE
    + _ACCESS
    + """
for at = 3, #ARGV, 6 do
  local expected = ARGV[at + 3]
  if expected ~= '' and tonumber(redis.call('ZSCORE', log_key, ARGV[at]) or -1) ~= tonumber(expected) then
    return false
  end
end

local function below(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function after(number)
  if #number < 16 then return string.format('%.0f', tonumber(number) + 1) end
  redis.call('SET', step_key, number)
  redis.call('INCR', step_key)
  return redis.call('GET', step_key)
end
local function taken(id)
  return redis.call('HEXISTS', rows_key, id) == 1 or redis.call('SISMEMBER', lent_key, id) == 1
end
local function free(wanted)
  if not taken(wanted) then return wanted end
  local low, high = 1, 2
  while taken(wanted .. '-' .. high) do low, high = high, high * 2 end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if taken(wanted .. '-' .. middle) then low = middle else high = middle end
  end
  return wanted .. '-' .. high
end

redis.call('SET', epoch_key, ARGV[1], 'NX')
local count = (#ARGV - 2) / 6
local now = redis.call('INCRBY', clock_key, count) - count
local reply = {redis.call('GET', epoch_key), now}
local some_gone = redis.call('EXISTS', gone_key) == 1
local next_step = redis.call('GET', step_key) or '0'
for at = 3, #ARGV, 6 do
  now = now + 1
  local id, step, body = ARGV[at], ARGV[at + 1], ARGV[at + 5]
  if step == '' then step = next_step end
  if not below(step, next_step) then next_step = after(step) end
  if id == '' then id = free(ARGV[2] .. '-' .. step .. '-' .. ARGV[at + 2]) end
  local old = redis.call('HGET', rows_key, id)
  local born = old and string.match(old, '^%d+') or string.format('%.0f', now)
  redis.call('HSET', rows_key, id, born .. ' ' .. step .. '\\n' .. body)
  redis.call('ZADD', log_key, now, id)
  if some_gone then redis.call('ZREM', gone_key, id) end
  if ARGV[at + 4] ~= '' then
    local count, last = string.match(ARGV[at + 4], '^(%d+) (.+)$')
    local held, latest = seen(id)
    note_access(id, math.max(held, tonumber(count)), math.max(latest, tonumber(last)))
  end
  reply[#reply + 1] = id
  reply[#reply + 1] = step
  reply[#reply + 1] = born
end
redis.call('SET', step_key, next_step)
return reply
"""
)

# ARGV: how many removals to keep listed at least, ids. Answers {epoch or '', clock before, ids that were there}.
FORGET = (
    _KEYS
    + _WHOLE
    + """
local now = tonumber(redis.call('GET', clock_key) or 0)
local reply = {redis.call('GET', epoch_key) or '', now}
for at = 2, #ARGV do
  local id = ARGV[at]
  if redis.call('HDEL', rows_key, id) == 1 then
    now = now + 1
    redis.call('ZREM', log_key, id)
    redis.call('HDEL', access_key, id)
    redis.call('ZADD', gone_key, now, id)
    reply[#reply + 1] = id
  end
end
if #reply > 2 then
  redis.call('SET', clock_key, string.format('%.0f', now))
  local spare = redis.call('ZCARD', gone_key) - tonumber(ARGV[1])
  if spare > tonumber(ARGV[1]) then
    redis.call('SET', floor_key, redis.call('ZRANGE', gone_key, spare - 1, spare - 1, 'WITHSCORES')[2])
    redis.call('ZREMRANGEBYRANK', gone_key, 0, spare - 1)
  end
end
return reply
"""
)

# ARGV: the epoch that is known, the clocks up to which its rows and its removals are known, how many rows to answer.
# Answers {epoch or '', 1 if all is read anew, clock of the rows, clock of the removals, ids gone, ids, values}.
FOLLOW = (
    _KEYS
    + _WHOLE
    + """
local epoch = redis.call('GET', epoch_key) or ''
local clock = tonumber(redis.call('GET', clock_key) or 0)
local rows, gone, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local anew = 0
if epoch ~= ARGV[1] or clock < math.max(rows, gone) or gone < tonumber(redis.call('GET', floor_key) or 0) then
  anew, rows, gone = 1, 0, clock
end
local removed = redis.call('ZRANGEBYSCORE', gone_key, string.format('(%.0f', gone), '+inf')
local found = redis.call('ZRANGEBYSCORE', log_key, string.format('(%.0f', rows), '+inf', 'LIMIT', 0, most)
local upto = clock
if #found == most then upto = tonumber(redis.call('ZSCORE', log_key, found[#found])) end
local values = {}
if #found > 0 then values = redis.call('HMGET', rows_key, unpack(found)) end
return {epoch, anew, upto, clock, removed, found, values}
"""
)

# ARGV: three for each memory: id, how often and when last. Answers the ids that were there.
TOUCH = (
    _KEYS
    + _ACCESS
    + """
local reply = {}
for at = 1, #ARGV, 3 do
  if redis.call('HEXISTS', rows_key, ARGV[at]) == 1 then
    local count, last = seen(ARGV[at])
    note_access(ARGV[at], count + tonumber(ARGV[at + 1]), math.max(last, tonumber(ARGV[at + 2])))
    reply[#reply + 1] = ARGV[at]
  end
end
return reply
"""
)

# Deletes the ids of removed memories, and of an agent without memories all but the ids of its form that others use.
# Processes that have not read the removals yet read the whole agent again.
SCRUB = (
    _KEYS
    + """
if redis.call('HLEN', rows_key) == 0 then
  return redis.call('DEL', rows_key, log_key, gone_key, clock_key, epoch_key, floor_key, step_key, access_key)
end
redis.call('SET', floor_key, redis.call('GET', clock_key))
return redis.call('DEL', gone_key)
"""
)
