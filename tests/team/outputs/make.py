"""Make the corpus of tool outputs, `corpus.jsonl`, by running the tools.

    python tests/team/outputs/make.py [--repository PATH_OF_CLICK] > tests/team/outputs/corpus.jsonl

Every case is a small project, a command, and what a person says of it: whether it failed, and words that name the
error. The tools are those on PATH; a case whose tool is missing is left out and named on standard error. With
`--repository` (a clone of pallets/click) its own tests are run too. Paths of this machine become /srv/project.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOM = 20_000  # characters of an output that are kept: its beginning and its end
HOME = "/srv/project"


class Case(NamedTuple):
    command: str
    files: dict[str, str]
    error: str = ""
    """What a headline must name if it failed: a regular expression. Empty: it did not fail."""


PY = {
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef price(row):\n    return row['price'] * 2\n",
    "test_ok.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_more():\n    assert add(0, 0) == 0\n",
    "test_bad.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 4\n\n\ndef test_fine():\n    assert add(0, 0) == 0\n",
    "test_key.py": "from calc import price\n\n\ndef test_price():\n    assert price({'cost': 3}) == 6\n",
    "test_errors.py": "import logging\n\n\ndef test_error_is_raised():\n    logging.error('connection failed, retrying')\n\n\n"
    "def test_failed_login_shows_an_error():\n    print('ERROR: fatal exception expected')\n",
    "test_missing.py": "import nosuchmodule\n\n\ndef test_x():\n    pass\n",
    "test_fixture.py": "def test_db(database):\n    assert database\n",
    "test_syntax.py": "def test_x(:\n    pass\n",
    "test_warn.py": "import warnings\n\n\ndef test_old():\n    warnings.warn('old_api is deprecated', DeprecationWarning)\n",
    "test_xfail.py": "import pytest\n\n\n@pytest.mark.xfail\ndef test_later():\n    assert False\n\n\n@pytest.mark.skip(reason='error on CI')\ndef test_skipped():\n    pass\n",
    "test_many.py": "import pytest\n\n\n@pytest.mark.parametrize('n', range(6))\ndef test_even(n):\n    assert n % 2 == 0, f'{n} is odd'\n",
    "test_dict.py": "def test_dict():\n    got = {'name': 'ann', 'age': 3, 'tags': list(range(20))}\n    assert got == {'name': 'bob', 'age': 3, 'tags': list(range(19))}\n",
    "test_group.py": "import asyncio\n\n\nasync def one():\n    raise TimeoutError('no answer from db1')\n\n\ndef test_group():\n    async def main():\n        async with asyncio.TaskGroup() as group:\n            group.create_task(one())\n\n    asyncio.run(main())\n",
}
UNIT = {
    "test_u.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 3)\n\n    def test_ok(self):\n        pass\n",
    "test_v.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_error_path(self):\n        with self.assertRaises(ZeroDivisionError):\n            1 / 0\n",
    "test_w.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_div(self):\n        1 / 0\n",
}
SCRIPTS = {
    "chained.py": "def read():\n    return {}['region']\n\n\ntry:\n    read()\nexcept KeyError as error:\n    raise RuntimeError('settings are incomplete') from error\n",
    "key.py": "rows = [{'id': 1}]\nprint('reading rows')\nfor row in rows:\n    print(row['carrier_code'])\n",
    "custom.py": "class QuotaExceeded(Exception):\n    pass\n\n\nraise QuotaExceeded('bucket nightly is full')\n",
    "exit.py": "import sys\n\nprint('loading settings')\nsys.exit('no settings file was given')\n",
    "usage.py": "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--port', type=int, required=True)\nparser.parse_args()\n",
    "caught.py": "import traceback\n\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\nprint('recovered, wrote 3 rows')\n",
    "logs.py": "import logging\n\nlogging.basicConfig(level=logging.INFO)\nlogging.error('could not reach cache, going on without')\nlogging.info('served 20 requests')\n",
    "syntax.py": "def f(:\n    pass\n",
    "deep.py": "def f(n):\n    return f(n + 1)\n\n\nf(0)\n",
    "report.py": "print('0 errors, 0 warnings')\nprint('error rate: 0.00 %')\n",
    "lines.py": "raise ValueError('the plan has faults:\\n - step 2 has no name\\n - step 5 has no end')\n",
    "sub.py": "import subprocess\n\nsubprocess.run(['git', 'rev-parse', '--verify', 'nosuch'], check=True)\n",
    "json_.py": "import json\n\njson.loads('{\"a\": 1,}')\n",
    "enc.py": "open('latin.txt', encoding='utf-8').read()\n",
    "latin.txt": "",
    "asserts.py": "total = 41\nassert total == 42, 'the books do not balance'\n",
    "warn.py": "import warnings\n\nwarnings.warn('parse() is deprecated, use load()', DeprecationWarning, stacklevel=1)\nprint('ok')\n",
    "notes.md": "# Errors\n\nError: ENOENT means that a file is missing.\nTraceback (most recent call last) is what Python prints.\nfatal: not a git repository\n",
}
JS = {
    "package.json": '{"name": "shop", "version": "1.0.0", "private": true, "scripts": {"test": "node --test", "build": "node build.js", "lint": "node lint.js", "ok": "echo built"}}',
    "build.js": "const {price} = require('./price')\nconsole.log(price(null).total)\n",
    "price.js": "exports.price = (row) => row\n",
    "lint.js": "console.log('2 problems (2 errors, 0 warnings)')\nprocess.exit(1)\n",
    "type.js": "const cart = undefined\nconsole.log('adding')\ncart.add(1)\n",
    "missing.js": "require('left-pad-that-nobody-has')\n",
    "syntax.js": "function total( { return 1 }\n",
    "reject.js": "async function main() { throw new Error('payment service answered 503') }\nmain()\n",
    "caught.js": "try { null.x } catch (e) { console.error(e.stack) }\nconsole.log('went on')\n",
    "fine.js": "console.log('errors: 0')\n",
    "ok.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\ntest('error is shown', () => assert.strictEqual(1, 1))\n",
}
JS_BAD = {
    **JS,
    "bad.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\ntest('adds up', () => assert.strictEqual(1 + 1, 3))\n",
}
TS = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2020", "types": []}, "files": ["a.ts"]}',
    "a.ts": "export function total(n: number): string {\n  return n\n}\nconsol.log(total('3'))\n",
}
TS_OK = {**TS, "a.ts": "export function total(n: number): number {\n  return n\n}\n"}
JEST = {
    "package.json": '{"name": "shop", "jest": {"testEnvironment": "node"}}',
    "sum.js": "module.exports = (a, b) => a + b\n",
    "sum.test.js": "const sum = require('./sum')\ntest('adds', () => { expect(sum(1, 2)).toBe(4) })\ntest('zero', () => { expect(sum(0, 0)).toBe(0) })\n",
}
JEST_OK = {
    **JEST,
    "sum.test.js": "const sum = require('./sum')\ntest('throws an error on failure', () => { expect(sum(1, 2)).toBe(3) })\n",
}
VITEST = {
    "package.json": '{"name": "shop", "type": "module"}',
    "sum.test.js": "import { expect, test } from 'vitest'\ntest('adds', () => { expect({ a: 1 }).toEqual({ a: 2 }) })\n",
}
VITEST_OK = {
    **VITEST,
    "sum.test.js": "import { expect, test } from 'vitest'\ntest('error', () => { expect(1).toBe(1) })\n",
}
ESLINT = {
    "package.json": '{"name": "shop", "type": "module"}',
    "eslint.config.js": "export default [{ rules: { 'no-undef': 'error', 'no-unused-vars': 'warn' } }]\n",
    "a.js": "export const x = window2.name\n",
    "b.js": "const unused = 1\nexport const y = 2\n",
    "c.js": "export const z = 3\n",
}
MYPY = {
    "a.py": "def f(n: int) -> str:\n    return n\n\n\nf('3')\n",
    "b.py": "def f(n: int) -> int:\n    return n\n",
    "c.py": "import os, sys\n\nx = undefined_name\n",
    "d.py": "x=1\ny = {  'a':2 }\n",
}
C = {
    "a.c": '#include <stdio.h>\nint main(void) { printf("%d\\n", totl); return 0; }\n',
    "b.c": "int helper(int);\nint main(void) { return helper(1); }\n",
    "c.c": '#include <stdio.h>\nint main(void) { int unused = 1; printf("error count: 0\\n"); return 0; }\n',
    "d.c": '#include "config_missing.h"\nint main(void) { return 0; }\n',
    "e.c": "int main(void) { int *p = 0; return *p; }\n",
    "Makefile": "all: app\napp: c.c\n\tgcc -Wall -o app c.c\nbroken: a.c\n\tgcc -o broken a.c\ntest: app\n\t./app\n\t@echo FAIL: totals differ; exit 3\nok:\n\t@echo 0 errors\nlink: b.c\n\tgcc -o link b.c\nneeds: gone.c\n\tgcc gone.c\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app c.c)\n",
}
CMAKE = {**C, "CMakeLists.txt": C["CMakeLists.txt"] + "find_package(NoSuchThing REQUIRED)\n"}
CPP = {
    "a.cpp": "#include <string>\n#include <vector>\nint main() { std::vector<std::string> v; v.push_back(3.5); std::string s = 1; }\n",
}
RUST = {"Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'}
RUST_OK = {
    **RUST,
    "src/main.rs": 'fn main() { println!("errors: 0"); }\n\n#[test]\nfn error_is_shown() { assert_eq!(1, 1); }\n',
}
RUST_WARN = {**RUST, "src/main.rs": "fn unused() {}\nfn main() { let x = 1; }\n"}
RUST_TYPE = {**RUST, "src/main.rs": 'fn main() { let n: u32 = "three"; println!("{}", n); }\n'}
RUST_BORROW = {
    **RUST,
    "src/main.rs": 'fn main() { let s = String::from("a"); let t = s; println!("{} {}", s, t); }\n',
}
RUST_TEST = {**RUST, "src/main.rs": "fn main() {}\n\n#[test]\nfn adds() { assert_eq!(1 + 1, 3); }\n"}
RUST_PANIC = {
    **RUST,
    "src/main.rs": 'fn main() { let rows: Vec<u32> = vec![]; println!("start"); let n = rows[2]; println!("{}", n); }\n',
}
RUST_DEP = {**RUST, "Cargo.toml": RUST["Cargo.toml"] + '[dependencies]\nserde = "1"\n', "src/main.rs": "fn main() {}\n"}
JAVA = {
    "A.java": "public class A { public static void main(String[] a) { Strin s = null; System.out.println(s) } }\n",
    "B.java": "public class B { public static void main(String[] a) { String s = null; System.out.println(s.length()); } }\n",
    "C.java": 'public class C { public static void main(String[] a) { System.out.println("no exceptions, 0 errors"); } }\n',
    "D.java": "public class D { int f() { return total; } }\n",
}
GIT = "git init -q -b main && git config user.email d@e.f && git config user.name d && echo 1 > a.txt && git add . && git commit -qm one"
CONFLICT = f"{GIT} && git checkout -qb side && echo 2 > a.txt && git commit -qam two && git checkout -q main && echo 3 > a.txt && git commit -qam three"
SQL = {
    "a.sql": "selec 1;\n",
    "b.sql": "create table t (id integer primary key); insert into t values (1); insert into t values (1);\n",
}
TEXT = {
    "app.log": "10:00 ERROR connection refused\n10:01 INFO ok\n10:02 ERROR Traceback (most recent call last):\n10:03 fatal: gave up\n",
    "a.json": '{"a": 1}',
    "b.json": "{'a': 1}",
    "one.txt": "a\nb\n",
    "two.txt": "a\nc\n",
    "run.sh": "echo start\nif [ 1 -eq 1 ; then\n  echo x\n",
    "strict.sh": "set -eu\necho deploying\necho $DEPLOY_TARGET_NOBODY_SET\n",
    "locked.sh": "echo hi\n",
}

CASES = [
    # pytest
    Case("pytest test_bad.py", PY, "assert 3 == 4"),
    Case("pytest -q test_key.py", PY, "KeyError: 'price'"),
    Case("python -m pytest test_missing.py", PY, "No module named 'nosuchmodule'"),
    Case("pytest test_fixture.py -v", PY, "fixture 'database' not found"),
    Case("pytest -k nothing_like_this test_ok.py", PY, "no tests ran|deselected"),
    Case("pytest tests/nowhere.py", PY, "file or directory not found: tests/nowhere.py"),
    Case("pytest test_bad.py --tb=short", PY, "assert 3 == 4"),
    Case("pytest test_key.py --tb=line", PY, "KeyError: 'price'"),
    Case("pytest -x -q test_syntax.py", PY, "SyntaxError"),
    Case("pytest test_many.py", PY, "is odd"),
    Case("pytest -vv test_dict.py", PY, "assert|AssertionError"),
    Case("pytest test_group.py", PY, "TimeoutError: no answer from db1|ExceptionGroup"),
    Case("pytest test_bad.py test_ok.py 2>&1 | tail -4", PY, "assert 3 == 4|test_bad.py::test_add|1 failed"),
    Case("pytest test_key.py | head -60; echo done", PY, "KeyError: 'price'"),
    Case("pytest test_ok.py", PY),
    Case("pytest -v test_errors.py", PY),
    Case("pytest -q test_ok.py", PY),
    Case("pytest test_warn.py", PY),
    Case("pytest -rA test_errors.py", PY),
    Case("pytest test_xfail.py -v", PY),
    Case("pytest --collect-only -q test_bad.py", PY),
    Case("pytest test_ok.py test_errors.py 2>&1 | tail -3", PY),
    # unittest
    Case("python -m unittest test_u -v", UNIT, "AssertionError: 2 != 3"),
    Case("python -m unittest test_w", UNIT, "ZeroDivisionError: division by zero"),
    Case("python -m unittest test_nowhere", UNIT, "No module named 'test_nowhere'"),
    Case("python -m unittest test_v -v", UNIT),
    Case("python -m unittest test_v", UNIT),
    # python
    Case("python key.py", SCRIPTS, "KeyError: 'carrier_code'"),
    Case("python chained.py", SCRIPTS, "RuntimeError: settings are incomplete"),
    Case("python custom.py", SCRIPTS, "QuotaExceeded: bucket nightly is full"),
    Case("python exit.py", SCRIPTS, "no settings file was given"),
    Case("python usage.py", SCRIPTS, "required: --port"),
    Case("python syntax.py", SCRIPTS, "SyntaxError: invalid syntax"),
    Case("python deep.py", SCRIPTS, "RecursionError"),
    Case("python lines.py", SCRIPTS, "ValueError: the plan has faults"),
    Case("python sub.py", SCRIPTS, "CalledProcessError|Needed a single revision|not a git repository"),
    Case("python json_.py", SCRIPTS, "JSONDecodeError"),
    Case("python enc.py", SCRIPTS, "UnicodeDecodeError"),
    Case("python asserts.py", SCRIPTS, "AssertionError: the books do not balance"),
    Case("python -m nosuch.tool --help", SCRIPTS, "No module named"),
    Case("python nowhere.py", SCRIPTS, "can't open file|No such file"),
    Case("python caught.py", SCRIPTS),
    Case("python logs.py", SCRIPTS),
    Case("python report.py", SCRIPTS),
    Case("python -W always warn.py", SCRIPTS),
    Case("cat notes.md", SCRIPTS),
    Case("python -c 'print(sum(range(10)))'", SCRIPTS),
    # node and npm
    Case("node type.js", JS, "TypeError: Cannot read properties of undefined"),
    Case("node missing.js", JS, "Cannot find module 'left-pad-that-nobody-has'"),
    Case("node syntax.js", JS, "SyntaxError"),
    Case("node reject.js", JS, "payment service answered 503"),
    Case("npm run build", JS, "TypeError: Cannot read properties of null"),
    Case("npm run deploy", JS, 'Missing script: "deploy"'),
    Case("npm run lint", JS, "2 problems|2 errors"),
    Case("npm test", JS_BAD, "2 !== 3|strictly equal|adds up"),
    Case("npm ci", {"package.json": '{"name": "x", "version": "1.0.0"}'}, "npm ci.*can only install|package-lock"),
    Case("npm install @remanence-nobody/none-such-package-x1", {"package.json": "{}"}, "404|Not Found"),
    Case("npm run", JS),
    Case("npm test --prefix .", JS),
    Case("npm run ok", JS),
    Case("node caught.js", JS),
    Case("node fine.js", JS),
    Case("node --test ok.test.js", JS),
    Case("npm pkg get name", JS),
    # TypeScript, eslint, prettier, jest, vitest
    Case("tsc -p .", TS, "TS\\d+"),
    Case("tsc --noEmit nowhere.ts", TS, "TS5112|TS6053"),
    Case("tsc -p .", TS_OK),
    Case("tsc --version", TS_OK),
    Case("eslint a.js", ESLINT, "no-undef|not defined"),
    Case("eslint b.js", ESLINT),
    Case("eslint c.js", ESLINT),
    Case("prettier --check d.js", {"d.js": "const a   = {b:1}\n"}, "d.js|Code style issues"),
    Case("prettier --check e.js", {"e.js": "const a = { b: 1 };\n"}),
    Case("prettier --check broken.js", {"broken.js": "const = 1\n"}, "SyntaxError"),
    Case("jest", JEST, "expect\\(received\\)|Expected: 4|● adds|sum.test.js"),
    Case("jest --verbose", JEST_OK),
    Case("vitest run", VITEST, "AssertionError: expected"),
    Case("vitest run", VITEST_OK),
    # ruff, mypy, flake8, black
    Case("ruff check .", MYPY, "F821|F401|E401|I001|Undefined name"),
    Case("ruff check b.py", MYPY),
    Case("ruff format --check d.py", MYPY, "Would reformat: d.py|1 file would be reformatted"),
    Case("ruff format --check b.py", MYPY),
    Case("mypy a.py", MYPY, "Incompatible return value|Argument 1"),
    Case("mypy b.py", MYPY),
    Case("flake8 c.py", MYPY, "F821|E401|F401|W292|E501"),
    Case("flake8 b.py", MYPY),
    Case("black --check d.py", MYPY, "would reformat"),
    Case("black --check b.py", MYPY),
    # C, make, cmake
    Case("gcc -o a a.c", C, "‘totl’ undeclared|'totl' undeclared"),
    Case("gcc -o b b.c", C, "undefined reference to `helper'"),
    Case("gcc d.c", C, "config_missing.h: No such file"),
    Case("gcc -Wall -Wextra -o c c.c", C),
    Case("gcc -o e e.c && ./e", C, "[Ee]xit code 139|Segmentation fault"),
    Case("g++ -o x a.cpp", CPP, "error: (?:conversion|no matching|invalid)"),
    Case("make broken", C, "‘totl’ undeclared|'totl' undeclared"),
    Case("make test", C, "FAIL: totals differ"),
    Case("make nosuch", C, "No rule to make target 'nosuch'"),
    Case("make needs", C, "No rule to make target 'gone.c'"),
    Case("make link 2>&1 | tail -5", C, "undefined reference to `helper'"),
    Case("make", C),
    Case("make ok", C),
    Case("make && make", C),
    Case("cmake -S . -B build", CMAKE, "NoSuchThing"),
    Case("cmake -S . -B build", C),
    # cargo
    Case("cargo build", RUST_TYPE, "mismatched types"),
    Case("cargo build", RUST_BORROW, "borrow of moved value"),
    Case("cargo test", RUST_TEST, "left: 2|assertion `left == right` failed|adds"),
    Case("cargo run", RUST_PANIC, "index out of bounds"),
    Case("cargo build --offline", RUST_DEP, "no matching package|serde"),
    Case("cargo check", RUST, "no targets specified|failed to parse manifest"),
    Case("cargo build", RUST_OK),
    Case("cargo build", RUST_WARN),
    Case("cargo test", RUST_OK),
    # java
    Case("javac A.java", JAVA, "';' expected|cannot find symbol"),
    Case("javac D.java", JAVA, "cannot find symbol"),
    Case("javac B.java && java B", JAVA, "NullPointerException"),
    Case("java -cp . Nowhere", JAVA, "Could not find or load main class|ClassNotFoundException"),
    Case("javac C.java && java C", JAVA),
    Case("mvn -q -o validate", {"x.txt": ""}, "no POM in this directory|MissingProject"),
    # git
    Case("git status", {"a.txt": "1"}, "not a git repository"),
    Case(f"{GIT} && git checkout nosuchbranch", {}, "pathspec 'nosuchbranch' did not match"),
    Case(f"{CONFLICT} && git merge side", {}, "CONFLICT|Automatic merge failed"),
    Case(f"{CONFLICT} && git rebase side", {}, "could not apply|CONFLICT"),
    Case(f"{GIT} && git push origin main", {}, "'origin' does not appear to be a git repository"),
    Case(f"{GIT} && git commit -m again", {}, "nothing to commit"),
    Case(f"{GIT} && git cherry-pick deadbeef", {}, "bad revision 'deadbeef'"),
    Case(f"{CONFLICT} && git branch -d side", {}, "not fully merged"),
    Case(f"{GIT} && git status", {}),
    Case(f"{GIT} && git log --oneline", {}),
    Case(f"{CONFLICT} && git diff side", {}),
    Case(f"{GIT} && git clone . other && git -C other log --oneline", {}),
    Case(f"{GIT} && git commit --allow-empty -m 'Fix error: fatal exception in login' && git log -1", {}),
    Case(f"{GIT} && git stash", {}),
    Case(f"{GIT} && git checkout -b topic && git branch", {}),
    Case(f"{CONFLICT} && git merge -X ours side", {}),
    # pip
    Case("python -m pip install remanence-none-such-package-x1", {}, "No matching distribution found|Could not find a version"),
    Case("python -m pip install -r requirements-missing.txt", {}, "Could not open requirements file|No such file"),
    Case("python -m pip install .", {"x.txt": ""}, "is not installable"),
    Case("python -m pip uninstall -y none-such-thing", {}),
    Case("python -m pip show pip", {}),
    Case("python -m pip list --format=freeze | head -3", {}),
    Case("python -m pip install pip", {}),
    # shell
    Case("grep -rn nothing_like_this .", TEXT),
    Case("grep -c ERROR app.log", TEXT),
    Case("grep ERROR app.log", TEXT),
    Case("grep x nowhere.txt", TEXT, "nowhere.txt: No such file"),
    Case("diff one.txt two.txt", TEXT),
    Case("cat app.log | tail -2", TEXT),
    Case("ls tests/clients", TEXT, "cannot access 'tests/clients'"),
    Case("ls -la one.txt two.txt | wc -l", TEXT),
    Case("cat nowhere.yml", TEXT, "nowhere.yml: No such file"),
    Case("frobnicate --all", TEXT, "frobnicate: (?:command )?not found"),
    Case("bash run.sh", TEXT, "syntax error"),
    Case("bash strict.sh", TEXT, "DEPLOY_TARGET_NOBODY_SET: unbound variable"),
    Case("./locked.sh", TEXT, "Permission denied"),
    Case("jq . b.json", TEXT, "parse error"),
    Case("jq .a a.json", TEXT),
    Case("find . -name '*.txt'", TEXT),
    Case("tar xf nowhere.tar", TEXT, "Cannot open: No such file"),
    Case("timeout 1 sleep 5", TEXT, "[Ee]xit code 124"),
    Case("test -f nowhere.txt && cat nowhere.txt", TEXT),
    Case("perl -e 'die \"quota exceeded\\n\"'", TEXT, "quota exceeded"),
    Case("sed -n 1,2p app.log", TEXT),
    Case("wc -l app.log", TEXT),
    Case("mkdir -p a/b && touch a/b/c && echo ok", TEXT),
    # network, databases, containers
    Case("curl -sS http://127.0.0.1:9/health", {}, "Failed to connect|Couldn't connect"),
    Case("curl -sS http://no-such-host.invalid/", {}, "Could not resolve host"),
    Case("curl -sS file:///etc/hostname-nowhere", {}, "Couldn't open file"),
    Case("curl -s file:///etc/host.conf", {}),
    Case("psql -h 127.0.0.1 -p 9 -c 'select 1'", {}, "Connection refused"),
    Case("sqlite3 x.db < a.sql", SQL, "syntax error"),
    Case("sqlite3 -bail x.db < b.sql", SQL, "UNIQUE constraint failed"),
    Case("sqlite3 x.db 'select 1 as errors'", SQL),
    Case("docker ps", {}, "Cannot connect to the Docker daemon"),
    Case("docker compose up -d", {"x.txt": ""}, "no configuration file|unknown|Cannot connect|not a docker command"),
    Case("ssh -o BatchMode=yes -o ConnectTimeout=2 -p 9 127.0.0.1 true", {}, "Connection refused"),
    Case("wget -q --tries=1 http://127.0.0.1:9/ || echo unreachable", {}),
]  # fmt: skip

CLICK = [
    Case("python -m pytest tests/test_basic.py -q", {}),
    Case("python -m pytest tests/test_arguments.py tests/test_options.py -q", {}),
    Case("python -m pytest tests/test_formatting.py -v", {}),
    Case("python -m pytest tests/test_termui.py -q 2>&1 | tail -15", {}),
    Case("python -m pytest tests/test_basic.py --collect-only -q | head -40", {}),
    Case("sed -i 's/return rv$/return None/' src/click/types.py && python -m pytest tests/test_types.py -q", {}, "assert|Error"),
    Case("sed -i 's/def echo(/def echo_(/' src/click/utils.py && python -m pytest tests/test_utils.py -q", {}, "ImportError|cannot import name"),
    Case("sed -i 's/raise NoSuchOption/raise NoSuchOptio/' src/click/parser.py && python -m pytest tests/test_parser.py tests/test_options.py -q 2>&1 | tail -40", {}, "NameError|AssertionError: assert"),
    Case("git log --oneline -30", {}),
    Case("git log -5 --grep=error -i", {}),
    Case("git show --stat HEAD~5", {}),
    Case("git diff HEAD~20 HEAD -- src/click/exceptions.py CHANGES.md", {}),
    Case("git blame -L 1,30 src/click/exceptions.py", {}),
    Case("git status && git branch -a", {}),
    Case("grep -rn 'raise .*Error' src/click | head -40", {}),
    Case("grep -rn 'Traceback' tests docs", {}),
    Case("cat src/click/exceptions.py", {}),
    Case("sed -n 1,120p src/click/core.py", {}),
    Case("head -80 CHANGES.rst", {}, "cannot open 'CHANGES.rst'"),
    Case("head -120 CHANGES.md", {}),
    Case("cat docs/exceptions.md 2>/dev/null || ls docs", {}),
    Case("ls -la src/click tests", {}),
    Case("find . -name '*.py' -path '*test*'", {}),
    Case("wc -l src/click/*.py", {}),
    Case("python -m compileall -q src && echo compiled", {}),
    Case("python -c 'import click; help(click.UsageError)'", {}),
    Case("python -c 'import click; click.echo(click.style(\"ERROR\", fg=\"red\"))'", {}),
    Case("ruff check src/click/utils.py", {}),
    Case("ruff check src --statistics --exit-zero --select ALL", {}),
    Case("mypy src/click/_winconsole_nowhere.py", {}, "can't read file|Cannot find|No such file"),
    Case("python -c \"import click; click.command()(click.option('--count', type=click.IntRange(2))(print))()\" --count 1", {}, "AttributeError: 'builtin_function"),
    Case("python -m click", {}, "No module named click.__main__|cannot be directly executed"),
    Case("python -c 'import click; click.Group()()' sink", {}, "No such command 'sink'"),
    Case("python -c 'import click; click.Group(help=\"Manage errors.\")()' --help", {}),
    Case("tail -n 3 pyproject.toml && git rev-parse --abbrev-ref HEAD", {}),
    Case("git tag | tail -5", {}),
    Case("git grep -n 'abort' -- src | head -20", {}),
    Case("du -sh . | cut -f1 | wc -l", {}),
]  # fmt: skip


MORE_PY = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart:\n    def __init__(self):\n        self.rows = []\n\n    def add(self, name, price):\n        self.rows.append((name, price))\n\n    def total(self):\n        return sum(price for _, price in self.rows)\n",
    "shop/doc.py": "def double(n):\n    '''\n    >>> double(2)\n    5\n    '''\n    return 2 * n\n",
    "tests/test_raises.py": "import pytest\nfrom shop.cart import Cart\n\n\ndef test_refuses_negative_prices():\n    with pytest.raises(ValueError):\n        Cart().add('a', -1)\n",
    "tests/test_setup.py": "import pytest\nfrom shop.cart import Cart\n\n\n@pytest.fixture\ndef cart():\n    raise ConnectionError('no database at db:5432')\n\n\ndef test_total(cart):\n    assert cart.total() == 0\n",
    "tests/test_attr.py": "from shop.cart import Cart\n\n\ndef test_discount():\n    cart = Cart()\n    cart.add('a', 3)\n    assert cart.discount(0.1) == 2.7\n",
    "tests/test_float.py": "def test_sum():\n    assert 0.1 + 0.2 == 0.3\n",
    "tests/test_fine.py": "import logging\nimport traceback\n\nfrom shop.cart import Cart\n\n\ndef test_total():\n    logging.getLogger('shop').error('payment failed: timeout')\n    assert Cart().total() == 0\n\n\ndef test_logs_a_traceback(caplog):\n    try:\n        raise KeyError('x')\n    except KeyError:\n        traceback.print_exc()\n",
    "tests/test_unit.py": "import unittest\n\n\nclass Totals(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        raise OSError('fixtures are missing')\n\n    def test_a(self):\n        pass\n",
    "tests/test_sub.py": "import unittest\n\n\nclass Rows(unittest.TestCase):\n    def test_rows(self):\n        for n in range(3):\n            with self.subTest(n=n):\n                self.assertIn(n, [0, 1])\n\n    @unittest.skip('flaky error')\n    def test_later(self):\n        self.fail('never')\n",
    "tests/test_passing_unit.py": "import unittest\n\n\nclass Failures(unittest.TestCase):\n    def test_failure_is_reported(self):\n        print('FAIL: expected')\n",
    "attr.py": "from shop.cart import Cart\n\nCart().remove('a')\n",
    "args.py": "from shop.cart import Cart\n\nCart().add('a')\n",
    "importing.py": "from shop.cart import Basket\n",
    "indent.py": "def f():\nreturn 1\n",
    "opened.py": "with open('data/rows.csv') as file:\n    print(file.read())\n",
    "port.py": "import socket\n\na = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()\nb = socket.socket(); b.bind(a.getsockname())\n",
    "wait.py": "import asyncio\n\nasyncio.run(asyncio.wait_for(asyncio.sleep(5), 0.1))\n",
    "typed.py": "print('total: ' + 3)\n",
    "quiet.py": "import sys\n\nprint('checked 3 files', file=sys.stderr)\nprint('retrying after error 503 ... ok', file=sys.stderr)\n",
    "progress.py": "for n in range(5):\n    print(f'batch {n}: 0 failed, 20 ok')\n",
    "report.json": '{"errors": [{"code": "E100", "message": "invalid value"}], "failed": 3}',
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.0"\n\n[build-system]\nrequires = []\nbuild-backend = "shop.nobackend"\nbackend-path = ["."]\n',
}
MORE_JS = {
    "package.json": '{"name": "shop", "version": "1.0.0", "main": "a.js", "scripts": {"start": "node server.js", "check": "node check.js && echo checked", "types": "tsc --noEmit -p tsconfig.json"}}',
    "ref.js": "console.log(basket.total)\n",
    "range.js": "new Array(-1)\n",
    "deep.js": "require('assert').deepStrictEqual({a: 1, b: [1, 2]}, {a: 1, b: [1, 3]})\n",
    "parse.js": "JSON.parse('{\"rows\": [1, 2,]}')\n",
    "esm.mjs": "import { total } from './nowhere.mjs'\n",
    "named.mjs": "import { total } from './cart.mjs'\n",
    "cart.mjs": "export const sum = 1\n",
    "server.js": "console.error('config/local.json is missing: copy config/example.json'); process.exit(2)\n",
    "check.js": "console.warn('warning: 2 deprecated calls'); console.log('no errors')\n",
    "emits.js": "const e = new (require('events'))(); e.emit('error', new Error('socket hang up'))\n",
    "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2020", "types": []}, "files": ["cart.ts"]}',
    "cart.ts": "interface Row { name: string; price: number }\nexport const row: Row = { name: 'a' }\nexport function f(x) { return x }\n",
    "fine.ts": "export type ErrorCode = 'failed' | 'fatal'\n",
}
MORE_JEST = {
    "package.json": '{"name": "shop", "jest": {"testEnvironment": "node"}}',
    "ref.test.js": "test('totals', () => { expect(basket.total()).toBe(3) })\n",
}
MORE_C = {
    "a.c": "int f(int a);\nint f(long a) { return 1; }\nint main(void) { return f(1); }\n",
    "b.c": "int main(void) { int a = 1 return a; }\n",
    "c.c": '#include <stdio.h>\nint main(void) { printf("failed: 0\\n"); return 0; }\n',
    "d.c": "int main(void) { return 0; }\n",
    "exit.c": '#include <stdio.h>\nint main(void) { fprintf(stderr, "device not ready\\n"); return 4; }\n',
    "abort.c": "#include <assert.h>\nint main(void) { int rows = 0; assert(rows > 0); return 0; }\n",
    "Makefile": "all:\n    echo spaces\n",
    "good.mk": "all: c\nc: c.c\n\tgcc -o c c.c\nclean:\n\trm -f c\ncheck: c\n\t./c\nfails: exit.c\n\tgcc -o e exit.c\n\t./e\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app b.c)\n",
}
LIB = {
    **RUST,
    "src/lib.rs": "/// ```\n/// assert_eq!(shop::double(2), 5);\n/// ```\npub fn double(n: u32) -> u32 { 2 * n }\n",
}
RUST_USE = {**RUST, "src/main.rs": "use std::collection::HashMap;\nfn main() {}\n"}
RUST_TRAIT = {**RUST, "src/main.rs": 'struct Row;\nfn main() { println!("{}", Row); }\n'}
RUST_RESULT = {**RUST, "src/main.rs": 'fn main() -> Result<(), String> { Err("no rows in nightly.csv".into()) }\n'}
RUST_FMT = {**RUST, "src/main.rs": 'fn main( ) { let x=1 ; println!("{}",x) }\n'}
MORE_JAVA = {
    "E.java": "public class E { int f() { String s = 3; return s; } }\n",
    "F.java": "public class F { public static void main(String[] a) { int[] r = new int[2]; System.out.println(r[5]); } }\n",
    "G.java": 'import java.util.*;\npublic class G { public static void main(String[] a) { List l = new ArrayList(); l.add(1); System.out.println("failures: " + (l.size() - 1)); } }\n',
    "H.java": 'public class H { public static void main(String[] a) { throw new IllegalStateException("order 17 has no rows"); } }\n',
}
BARE = f"git init -q --bare ../bare.git && {GIT} && git remote add origin ../bare.git"
DIRTY = (
    f"{GIT} && git checkout -qb side && echo 2 > a.txt && git commit -qam two && git checkout -q main && echo 9 > a.txt"
)

MORE_CASES = [
    Case("python -m pytest tests/test_raises.py", MORE_PY, "DID NOT RAISE"),
    Case("python -m pytest tests/test_setup.py -q", MORE_PY, "ConnectionError: no database"),
    Case("python -m pytest tests/test_attr.py tests/test_fine.py", MORE_PY, "AttributeError: 'Cart' object has no attribute 'discount'"),
    Case("python -m pytest tests/test_float.py -q --no-header", MORE_PY, "assert \\(?0.1 \\+ 0.2|assert 0.3"),
    Case("python -m pytest --doctest-modules shop/doc.py", MORE_PY, "double"),
    Case("python -m pytest --no-such-flag", MORE_PY, "unrecognized arguments: --no-such-flag"),
    Case("python -m pytest tests -q 2>&1 | tail -30", MORE_PY, "Error|assert|DID NOT RAISE"),
    Case("python -m pytest tests/test_fine.py -v", MORE_PY),
    Case("python -m pytest tests/test_fine.py -s", MORE_PY),
    Case("python -m pytest tests/test_fine.py -rA -q", MORE_PY),
    Case("python -m pytest tests/test_fine.py --durations=3 2>&1 | tail -8", MORE_PY),
    Case("python -m unittest tests.test_unit", MORE_PY, "OSError: fixtures are missing"),
    Case("python -m unittest tests.test_sub -v", MORE_PY, "AssertionError: 2 not found in"),
    Case("python -m unittest -v tests.test_passing_unit", MORE_PY),
    Case("python -m doctest shop/doc.py", MORE_PY, "Failed example|doc.py\", line|Test Failed"),
    Case("python attr.py", MORE_PY, "AttributeError: 'Cart' object has no attribute 'remove'"),
    Case("python args.py", MORE_PY, "TypeError: .*missing 1 required"),
    Case("python importing.py", MORE_PY, "ImportError: cannot import name 'Basket'"),
    Case("python indent.py", MORE_PY, "IndentationError"),
    Case("python opened.py", MORE_PY, "FileNotFoundError"),
    Case("python port.py", MORE_PY, "OSError: .*in use"),
    Case("python wait.py", MORE_PY, "TimeoutError"),
    Case("python typed.py 2>&1", MORE_PY, "TypeError: can only concatenate"),
    Case("python -m json.tool shop/cart.py", MORE_PY, "Expecting value"),
    Case("python quiet.py", MORE_PY),
    Case("python progress.py", MORE_PY),
    Case("python -m json.tool report.json", MORE_PY),
    Case("cat report.json", MORE_PY),
    Case("python -m timeit -n 10 'sum(range(10))'", MORE_PY),
    Case("python -m compileall -q shop", MORE_PY),
    Case("python -m compileall -q indent.py", MORE_PY, "IndentationError|SyntaxError|expected an indented block"),
    Case("python -m pip install --no-deps .", MORE_PY, "shop.nobackend|Cannot import|BackendUnavailable|subprocess-exited-with-error|metadata"),
    Case("python -m pip check", {}),
    Case("python -m pip install 'pip==99.0'", {}, "No matching distribution|Could not find a version"),
    Case("node ref.js", MORE_JS, "ReferenceError: basket is not defined"),
    Case("node range.js", MORE_JS, "RangeError: Invalid array length"),
    Case("node deep.js", MORE_JS, "AssertionError|strictly deep-equal"),
    Case("node parse.js", MORE_JS, "SyntaxError"),
    Case("node esm.mjs", MORE_JS, "Cannot find module|ERR_MODULE_NOT_FOUND"),
    Case("node named.mjs", MORE_JS, "does not provide an export named 'total'"),
    Case("node emits.js", MORE_JS, "socket hang up"),
    Case("npm start", MORE_JS, "config/local.json is missing"),
    Case("npm run types", MORE_JS, "TS\\d+"),
    Case("npm run check", MORE_JS),
    Case("npm version not-a-version", MORE_JS, "Invalid version"),
    Case("npm pack --dry-run", MORE_JS),
    Case("node -e 'console.log(new Error(\"only shown\").message)'", MORE_JS),
    Case("node -p '[1, 2].map(String)'", MORE_JS),
    Case("tsc --noEmit --strict --ignoreConfig cart.ts", MORE_JS, "TS\\d+"),
    Case("tsc --noEmit --strict --ignoreConfig fine.ts", MORE_JS),
    Case("tsc --project nowhere.json", MORE_JS, "TS\\d+"),
    Case("eslint nowhere.js", ESLINT, "No files matching"),
    Case("eslint .", {**ESLINT, "a.js": "export const = 1\n"}, "Parsing error"),
    Case("eslint c.js", {"c.js": "export {}\n"}, "eslint.config"),
    Case("prettier --write f.js", {"f.js": "const a   = {b:1}\n"}),
    Case("jest", MORE_JEST, "ReferenceError: basket is not defined"),
    Case("jest nowhere", MORE_JEST, "No tests found"),
    Case("vitest run nowhere", VITEST, "No test files found"),
    Case("vitest run --reporter=verbose", VITEST_OK),
    Case("mypy --strict e.py", {"e.py": "import nosuch_package\n\n\ndef f(x):\n    return x\n"}, "Cannot find implementation|import-not-found"),
    Case("mypy f.py", {"f.py": "def f(:\n"}, "[Ss]yntax"),
    Case("mypy g.py", {"g.py": "x = 1\nreveal_type(x)\n"}),
    Case("ruff check h.py", {"h.py": "def f(:\n"}, "invalid-syntax|SyntaxError|Expected"),
    Case("ruff check --fix i.py", {"i.py": "import os\n\nx = 1\n"}),
    Case("ruff check --select NOPE .", {"i.py": ""}, "NOPE"),
    Case("black j.py", {"j.py": "x=1\n"}),
    Case("black k.py", {"k.py": "x = (\n"}, "cannot parse|Unexpected EOF"),
    Case("gcc -c a.c", MORE_C, "conflicting types for"),
    Case("gcc -c b.c", MORE_C, "expected"),
    Case("gcc -o d d.c -lnosuchlibrary", MORE_C, "cannot find -lnosuchlibrary"),
    Case("gcc nowhere.c", MORE_C, "nowhere.c: No such file"),
    Case("gcc -o e exit.c && ./e", MORE_C, "device not ready"),
    Case("gcc -o ab abort.c && ./ab", MORE_C, "Assertion `rows > 0' failed"),
    Case("make", MORE_C, "missing separator"),
    Case("make -f good.mk fails", MORE_C, "device not ready"),
    Case("make -f good.mk check", MORE_C),
    Case("make -f good.mk -n all", MORE_C),
    Case("make -f good.mk clean", MORE_C),
    Case("cmake -S . -B build && cmake --build build", MORE_C, "expected"),
    Case("cmake --build nowhere", MORE_C, "nowhere"),
    Case("cargo test", LIB, "left: 4|assertion `left == right` failed|src/lib.rs|double"),
    Case("cargo build", RUST_USE, "unresolved import|E0432|could not find"),
    Case("cargo check", RUST_TRAIT, "doesn't implement|E0277"),
    Case("cargo run", RUST_RESULT, "no rows in nightly.csv"),
    Case("cargo fmt --check", RUST_FMT, "Diff in|main.rs"),
    Case("cargo run --bin nosuch", RUST_OK, "no bin target named"),
    Case("cargo run", RUST_OK),
    Case("cargo check", RUST_WARN),
    Case("cargo new other --vcs none", {}),
    Case("javac E.java", MORE_JAVA, "incompatible types"),
    Case("javac F.java && java F", MORE_JAVA, "ArrayIndexOutOfBoundsException"),
    Case("javac H.java && java H", MORE_JAVA, "IllegalStateException: order 17 has no rows"),
    Case("javac Nowhere.java", MORE_JAVA, "file not found: Nowhere.java"),
    Case("javac -Xlint G.java && java G", MORE_JAVA),
    Case(f"{BARE} && git push -u origin main", {}),
    Case(f"{BARE} && git push -q origin main && git commit -q --amend -m other && git push origin main", {}, "rejected|non-fast-forward|failed to push"),
    Case(f"{DIRTY} && git checkout side", {}, "would be overwritten"),
    Case(f"{GIT} && git pull", {}, "no tracking information"),
    Case(f"{GIT} && git clone ../nowhere.git", {}, "does not exist"),
    Case(f"{GIT} && echo nonsense > x.patch && git apply x.patch", {}, "No valid patches|unrecognized input"),
    Case(f"{GIT} && git tag v1 && git tag v1", {}, "tag 'v1' already exists"),
    Case(f"{GIT} && git rm nowhere.txt", {}, "did not match any files"),
    Case(f"{GIT} && printf '#!/bin/sh\\necho lint: 3 findings >&2\\nexit 1\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git commit --allow-empty -m x", {}, "lint: 3 findings"),
    Case(f"{GIT} && git revert --no-edit HEAD && git log --oneline", {}),
    Case(f"{CONFLICT} && git rebase -X theirs side", {}),
    Case(f"{GIT} && git worktree add ../w -b w && git worktree list", {}),
    Case(f"{GIT} && git show HEAD", {}),
    Case(f"{GIT} && git gc --quiet && git count-objects", {}),
    Case("cp nowhere.txt elsewhere.txt", TEXT, "cannot stat 'nowhere.txt'"),
    Case("rm nowhere.txt", TEXT, "cannot remove 'nowhere.txt'"),
    Case("mkdir one.txt", TEXT, "cannot create directory"),
    Case("gunzip one.txt", TEXT, "unknown suffix|not in gzip"),
    Case("sed -e 's/a/b' one.txt", TEXT, "unterminated"),
    Case("awk '{print $1' one.txt", TEXT, "missing }"),
    Case("kill -0 99999999", TEXT, "No such process|arguments must be"),
    Case("date -d 'no day at all'", TEXT, "invalid date"),
    Case("python3.99 --version", TEXT, "python3.99: (?:command )?not found"),
    Case("cd nowhere && ls", TEXT, "nowhere: No such file"),
    Case("set -o pipefail; false | cat; exit 3", TEXT, "[Ee]xit code 3"),
    Case("openssl x509 -in one.txt -noout", TEXT, "[Uu]nable to load|Could not (?:read|find|open)"),
    Case("unzip -t one.txt 2>/dev/null || tar tf one.txt", TEXT, "does not look like a tar|tar"),
    Case("which nosuchtool", TEXT),
    Case("grep -c nothing_here app.log", TEXT),
    Case("cmp one.txt two.txt", TEXT),
    Case("for n in 1 2 3; do echo \"run $n failed=0\"; done", TEXT),
    Case("tar cf x.tar one.txt && tar tf x.tar", TEXT),
    Case("sort app.log | uniq -c", TEXT),
    Case("awk '/ERROR/ {n++} END {print n}' app.log", TEXT),
    Case("ls", TEXT),
    Case("cp one.txt three.txt && diff -q one.txt three.txt", TEXT),
    Case("sqlite3 x.db 'create table errors (id); select count(*) from errors'", {}),
    Case("sqlite3 x.db 'select * from nowhere'", {}, "no such table"),
    Case("psql -h 127.0.0.1 -p 9 -U app -d shop -f nowhere.sql", {}, "Connection refused|nowhere.sql"),
    Case("curl -sS -o x.html ftp://127.0.0.1:9/x", {}, "Failed to connect|Couldn't connect"),
    Case("docker build .", {"Dockerfile": "FROM scratch\n"}, "Cannot connect|unknown|daemon"),
    Case("mvn -q -o compile -f nowhere.xml", {}, "nowhere.xml"),
    Case("perl -c x.pl", {"x.pl": "my $a = ;\n"}, "syntax error"),
    Case("perl -c x.pl", {"x.pl": "print 1;\n"}),
    Case("bash -n run.sh", TEXT, "syntax error"),
]  # fmt: skip


# Made when the reading was finished: nobody looked at these before the figures were taken.
LAST_PY = {
    "inventory.py": "import sqlite3\n\n\ndef stock(path):\n    return sqlite3.connect(path).execute('select n from stock').fetchall()\n\n\ndef rate(a, b):\n    return a / b\n\n\ndef parse(text):\n    return int(text)\n",
    "test_stock.py": "from inventory import parse, rate, stock\n\n\ndef test_stock(tmp_path):\n    assert stock(tmp_path / 'x.db') == []\n",
    "test_parse.py": "from inventory import parse\n\n\ndef test_parse():\n    assert parse('12 pieces') == 12\n",
    "test_text.py": "def test_text():\n    assert 'total: 3' in 'totals: 4\\nnothing else'\n",
    "test_approx.py": "import pytest\n\n\ndef test_rate():\n    assert 1 / 3 == pytest.approx(0.34)\n",
    "test_teardown.py": "import pytest\n\n\n@pytest.fixture\ndef server():\n    yield 1\n    raise RuntimeError('port 8080 was never released')\n\n\ndef test_up(server):\n    assert server == 1\n",
    "test_good.py": "import warnings\n\nfrom inventory import rate\n\n\ndef test_rate():\n    warnings.warn('failed to load cache', UserWarning)\n    assert rate(4, 2) == 2\n\n\ndef test_division_by_zero_raises_an_error():\n    try:\n        rate(1, 0)\n    except ZeroDivisionError as error:\n        print('Error:', error)\n",
    "conftest_broken/conftest.py": "import nosuch_plugin\n",
    "conftest_broken/test_a.py": "def test_a():\n    pass\n",
    "unbound.py": "def f(flag):\n    if flag:\n        rows = 1\n    return rows\n\n\nf(False)\n",
    "index.py": "rows = []\nprint(rows[0])\n",
    "unpack.py": "a, b = (1, 2, 3)\n",
    "notimpl.py": "class Base:\n    def run(self):\n        raise NotImplementedError('run() must be overridden')\n\n\nBase().run()\n",
    "env.py": "import os\n\nprint(os.environ['DATABASE_URL_NOBODY_SET'])\n",
    "group.py": "raise ExceptionGroup('two jobs failed', [ValueError('a'), KeyError('b')])\n",
    "threads.py": "import threading\n\n\ndef work():\n    raise RuntimeError('worker 3 lost its lease')\n\n\nt = threading.Thread(target=work)\nt.start()\nt.join()\nraise SystemExit(1)\n",
    "retry.py": "for n in range(2):\n    print(f'attempt {n}: failed (timeout), trying again')\nprint('attempt 2: ok, 12 rows written')\n",
    "table.py": "print('name      errors  failed')\nprint('customers      0       0')\n",
    "helpme.py": "import argparse\n\nparser = argparse.ArgumentParser(description='Show errors of a run')\nparser.add_argument('--fail-on-error', action='store_true')\nparser.parse_args()\n",
}
LAST_JS = {
    "package.json": '{"name": "web", "version": "2.0.0", "scripts": {"build": "node a.js && node b.js", "test": "node --test t.test.js", "fine": "node fine.js"}, "dependencies": {}}',
    "a.js": "console.log('bundled 3 files')\n",
    "b.js": "const fs = require('fs')\nfs.readFileSync('dist/manifest.json')\n",
    "t.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\ntest('parses', () => { assert.deepStrictEqual([1, 2], [1, 3]) })\ntest('loads', async () => { throw new Error('fixture users.json is empty') })\n",
    "fine.js": "console.error('deprecated option --fail, ignored')\nconsole.log('0 failing')\n",
    "const.js": "const a = 1\na = 2\n",
    "fn.js": "const api = {}\napi.fetchOrders()\n",
    "iter.js": "const [a] = undefined\n",
    "lock/package.json": '{"name": "x", "version": "1.0.0", "dependencies": {"a": "1"}}',
    "lock/package-lock.json": "{ not json",
    "u.ts": "type A = { id: number }\nconst f = (a: A | null) => a.id\nexport const g: string = f({ id: 1 })\n",
    "v.ts": "export class Failure extends Error {}\n",
    "w.tsx": "export const x = <div>\n",
}
LAST_C = {
    "a.c": "struct row { int id; };\nint main(void) { struct row r; return r.total; }\n",
    "b.c": "#include <stdlib.h>\nint main(void) { int *p = malloc(4); free(p); free(p); return 0; }\n",
    "c.c": "#warning this is only a warning\nint main(void) { return 0; }\n",
    "d.c": "int f(void) { return 1; }\nint f(void) { return 2; }\nint main(void) { return f(); }\n",
    "e.c": "void f(int, int);\nint main(void) { f(1); }\n",
    "Makefile": "build: a.o\n\t@echo linked\na.o: a.c\n\tcc -c a.c\ncheck:\n\t@python3 -c \"assert 1 == 2, 'ledger differs'\"\nquiet:\n\t@true\nnested:\n\t$(MAKE) check\n",
}
LAST_RUST = {
    **RUST,
    "src/main.rs": 'fn total(rows: &Vec<u32>) -> u32 { rows.iter().sum() }\nfn main() { println!("{}", total(vec![1, 2])); }\n',
}
LAST_RUST_UNWRAP = {**RUST, "src/main.rs": 'fn main() { let n: u32 = "x1".parse().unwrap(); println!("{}", n); }\n'}
LAST_RUST_SYNTAX = {**RUST, "src/main.rs": 'fn main() { println!("a" }\n'}
LAST_RUST_TESTS = {
    **RUST,
    "src/main.rs": 'fn main() {}\n\n#[test]\nfn fails_gracefully() { assert!(true); }\n\n#[test]\n#[should_panic(expected = "overflow")]\nfn panics() { panic!("overflow"); }\n',
}
LAST_JAVA = {
    "J.java": "import java.util.*;\npublic class J { public static void main(String[] a) { new ArrayList<Integer>().iterator().next(); } }\n",
    "K.java": "public class K { void f() { int x; System.out.println(x); } }\n",
    "L.java": "class Wrong { }\npublic class M { }\n",
    "N.java": 'public class N { public static void main(String[] a) { System.err.println("WARN: retry after failure"); System.exit(0); } }\n',
}
TEST_CASES = [
    Case("python -m pytest test_stock.py", LAST_PY, "OperationalError: no such table: stock"),
    Case("python -m pytest -q test_parse.py test_good.py", LAST_PY, "ValueError: invalid literal"),
    Case("python -m pytest test_text.py -q", LAST_PY, "assert 'total: 3' in"),
    Case("python -m pytest test_approx.py --tb=short", LAST_PY, "assert"),
    Case("python -m pytest test_teardown.py", LAST_PY, "RuntimeError: port 8080"),
    Case("python -m pytest conftest_broken", LAST_PY, "No module named 'nosuch_plugin'"),
    Case("python -m pytest test_good.py", LAST_PY),
    Case("python -m pytest test_good.py -vv -s", LAST_PY),
    Case("python -m pytest --version", LAST_PY),
    Case("python -m pytest test_stock.py test_good.py -q 2>&1 | tail -5", LAST_PY, "no such table|test_stock"),
    Case("python -m pytest test_good.py -q | tee out.txt", LAST_PY),
    Case("python unbound.py", LAST_PY, "UnboundLocalError"),
    Case("python index.py", LAST_PY, "IndexError: list index out of range"),
    Case("python unpack.py", LAST_PY, "ValueError: too many values"),
    Case("python notimpl.py", LAST_PY, "NotImplementedError: run\\(\\) must"),
    Case("python env.py", LAST_PY, "KeyError: 'DATABASE_URL"),
    Case("python group.py", LAST_PY, "ExceptionGroup: two jobs failed|ValueError: a"),
    Case("python threads.py", LAST_PY, "RuntimeError: worker 3 lost its lease"),
    Case("python retry.py", LAST_PY),
    Case("python table.py", LAST_PY),
    Case("python helpme.py --help", LAST_PY),
    Case("python helpme.py --nope", LAST_PY, "unrecognized arguments: --nope"),
    Case("python -m unittest test_nothing_here", LAST_PY, "No module named 'test_nothing_here'"),
    Case("python -c 'import inventory; print(inventory.rate(1, 2))'", LAST_PY),
    Case("python -m py_compile inventory.py && echo compiled", LAST_PY),
    Case("npm run build", LAST_JS, "ENOENT|no such file"),
    Case("npm test", LAST_JS, "parses|deeply|deep-equal|fixture users"),
    Case("npm run fine", LAST_JS),
    Case("npm ci --prefix lock", LAST_JS, "JSON|EJSONPARSE|package-lock|lockfile"),
    Case("npm run nope --silent", LAST_JS, "Missing script|nope|[Ee]xit code 1"),
    Case("npm ls", LAST_JS),
    Case("node const.js", LAST_JS, "TypeError: Assignment to constant variable"),
    Case("node fn.js", LAST_JS, "TypeError: api.fetchOrders is not a function"),
    Case("node iter.js", LAST_JS, "TypeError: undefined is not iterable"),
    Case("node --check a.js", LAST_JS),
    Case("node nowhere.js", LAST_JS, "Cannot find module"),
    Case("tsc --noEmit --strict --ignoreConfig u.ts", LAST_JS, "TS\\d+"),
    Case("tsc --noEmit --strict --ignoreConfig v.ts", LAST_JS),
    Case("tsc --noEmit --ignoreConfig w.tsx", LAST_JS, "TS\\d+"),
    Case("eslint c.js --max-warnings 0", {**ESLINT, "c.js": "const unused = 1\n"}, "unused|max-warnings|too many warnings"),
    Case("prettier --check .", {"a.js": "const a = 1;\n"}),
    Case("vitest run", {**VITEST, "sum.test.js": "import { expect, test } from 'vitest'\nimport { add } from './nowhere.js'\ntest('adds', () => { expect(add(1)).toBe(1) })\n"}, "Cannot find|Failed to (?:load|resolve)|does not exist"),
    Case("jest --passWithNoTests nowhere", JEST),
    Case("mypy --strict a.py", {"a.py": "def f(x):\n    return x\n"}, "no-untyped-def|missing a type annotation"),
    Case("mypy .", {"a.py": "import os\n"}),
    Case("ruff check . --output-format=concise", {"a.py": "import os\n"}, "F401"),
    Case("ruff format a.py", {"a.py": "x=1\n"}),
    Case("flake8 --max-line-length 20 a.py", {"a.py": "value = 'a long line of text that goes on'\n"}, "E501"),
    Case("gcc a.c", LAST_C, "has no member named ‘total’|has no member named"),
    Case("gcc c.c && ./a.out && echo fine", LAST_C),
    Case("gcc d.c", LAST_C, "redefinition of"),
    Case("gcc e.c", LAST_C, "too few arguments"),
    Case("make", LAST_C, "has no member named"),
    Case("make check", LAST_C, "AssertionError: ledger differs"),
    Case("make nested", LAST_C, "AssertionError: ledger differs"),
    Case("make quiet", LAST_C),
    Case("make -C nowhere", LAST_C, "nowhere: No such file"),
    Case("make --version | head -1", LAST_C),
    Case("cargo build", LAST_RUST, "mismatched types"),
    Case("cargo run -q", LAST_RUST_UNWRAP, "ParseIntError|invalid digit"),
    Case("cargo check", LAST_RUST_SYNTAX, "expected|mismatched|unclosed"),
    Case("cargo test", LAST_RUST_TESTS),
    Case("cargo build --release", LAST_RUST_TESTS),
    Case("cargo frobnicate", RUST_OK, "no such command: `frobnicate`"),
    Case("javac J.java && java J", LAST_JAVA, "NoSuchElementException"),
    Case("javac K.java", LAST_JAVA, "might not have been initialized"),
    Case("javac L.java", LAST_JAVA, "should be declared in a file named"),
    Case("javac N.java && java N", LAST_JAVA),
    Case(f"{GIT} && git merge nowhere", {}, "not something we can merge"),
    Case(f"{GIT} && git rebase nowhere", {}, "invalid upstream 'nowhere'"),
    Case(f"{GIT} && git stash pop", {}, "No stash entries found"),
    Case(f"{GIT} && git branch main", {}, "already exists"),
    Case(f"{CONFLICT} && (git merge side || true) && git commit -m x", {}, "unmerged files|not possible"),
    Case(f"{GIT} && git reset --hard HEAD~9", {}, "ambiguous argument|unknown revision"),
    Case(f"{GIT} && git frob", {}, "'frob' is not a git command"),
    Case(f"{GIT} && git fetch && git remote -v", {}),
    Case(f"{GIT} && echo 2 >> a.txt && git diff", {}),
    Case(f"{GIT} && git mv a.txt b.txt && git commit -m 'Fix failing error handler'", {}),
    Case(f"{GIT} && git checkout -q -b x && git merge main", {}),
    Case(f"{CONFLICT} && git cherry-pick side", {}, "could not apply|CONFLICT"),
    Case("python -m pip install --dry-run --no-index remanence-nothing", {}, "No matching distribution|Could not find"),
    Case("python -m pip --version", {}),
    Case("python -m pip frobnicate", {}, 'unknown command "frobnicate"'),
    Case("mv nowhere.txt x", TEXT, "cannot stat 'nowhere.txt'"),
    Case("chmod 600 nowhere.txt", TEXT, "cannot access 'nowhere.txt'"),
    Case("head -c 10 nowhere.txt", TEXT, "cannot open 'nowhere.txt'"),
    Case("ln -s one.txt two.txt", TEXT, "File exists"),
    Case("rmdir nowhere", TEXT, "failed to remove"),
    Case("xargs -a nowhere.txt echo", TEXT, "[Cc]annot open|No such file"),
    Case("bash -c 'echo step 1; exit 7'", TEXT, "step 1|[Ee]xit code 7"),
    Case("source nowhere.sh", TEXT, "nowhere.sh: No such file"),
    Case("gzip -k one.txt && ls", TEXT),
    Case("find . -name '*.log' -exec grep -l ERROR {} +", TEXT),
    Case("tail -f /dev/null & sleep 0.1; kill $!; echo stopped", TEXT),
    Case("[ -d nowhere ]", TEXT),
    Case("diff -u one.txt two.txt", TEXT),
    Case("cut -d' ' -f2 app.log | sort | uniq -c", TEXT),
    Case("xxd one.txt | head -1", TEXT),
    Case("python -c 'import json; print(json.load(open(\"a.json\")))'", TEXT),
    Case("perl -ne 'print if /ERROR/' app.log", TEXT),
    Case("sqlite3 x.db 'insert into gone values (1)'", {}, "no such table: gone"),
    Case("sqlite3 x.db '.tables'", {}),
    Case("curl -sS --max-time 2 https://127.0.0.1:9/", {}, "Failed to connect|Couldn't connect"),
    Case("cmake --version", {}),
    Case("cmake -S nowhere -B build", {}, "nowhere"),
    Case("docker run hello", {}, "Cannot connect|daemon|docker"),
    Case("openssl version", {}),
    Case("openssl rsa -in nowhere.pem", {}, "nowhere.pem|No such file|Could not open"),
    Case("ssh-keygen -l -f nowhere.pub", {}, "nowhere.pub"),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, help="a clone of pallets/click")
    given = parser.parse_args()
    cases: list[tuple[Case, Path | None, str]] = [(case, None, "tuning") for case in CASES]
    cases += [(case, given.repository, "tuning") for case in CLICK if given.repository]
    cases += [(case, None, "tuning") for case in MORE_CASES]
    cases += [(case, None, "test") for case in TEST_CASES]
    for number, (case, source, part) in enumerate(cases):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "project"
            told = run(case, root, source)
        if told is None:
            print(f"left out, its tool is missing: {case.command}", file=sys.stderr)
            continue
        row = {
            "id": number,
            "part": part,
            "command": case.command,
            "failed": bool(case.error),
            "error": case.error,
            **told,
        }
        print(json.dumps(row, ensure_ascii=False))


def run(case: Case, root: Path, source: Path | None) -> dict[str, object] | None:
    """The exit code and the output; None if the tool is not here."""
    if source is None:
        root.mkdir()
    else:
        subprocess.run(["git", "clone", "-q", str(source), str(root)], check=True)
    for name, text in case.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"Gr\xf6\xdfe" if name == "latin.txt" else text.encode())
    tool = case.command.split()[0]
    if shutil.which(tool) is None and tool not in ("frobnicate", "./locked.sh", "python3.99", "cd", "set", "for"):
        return None
    home = root.parent / "home"
    home.mkdir()
    kept = ("PATH", "LANG", "CARGO_HOME", "RUSTUP_HOME", "SSL_CERT_FILE", "PIP_CERT")
    env = {**{name: os.environ[name] for name in kept if name in os.environ}, "HOME": str(home), "NO_COLOR": "1"}
    env |= {"PYTHONPATH": "src"} if source is not None else {}
    env |= {"CARGO_HOME": os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")), "CI": "1"}
    env |= {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))}
    done = subprocess.run(
        ["bash", "-c", case.command], cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, check=False,
    )  # fmt: skip
    output = done.stdout.decode("utf-8", "replace")
    output = output.replace(str(root), HOME).replace(str(root.parent), "/srv")
    for name in (sys.prefix, sys.base_prefix, os.path.expanduser("~")):
        output = output.replace(name, "/usr")
    output = re.sub(
        r"https?://(?!127\.0\.0\.1|no-such-host|nodejs\.org|docs\.)[\w.:-]+/", "https://example.org/", output
    )
    output = re.sub(r"(?:/(?:work|tmp|root|opt))(?:/[\w.@+-]+)+", "/usr/lib/tools", output)
    if len(output) > ROOM:
        output = f"{output[: ROOM // 2]}\n…\n{output[-ROOM // 2 :]}"
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return {"exit": code, "output": output}


if __name__ == "__main__":
    main()
