"""`client.transaction()`: all statements of a thread as one, on both engines; refused with a reason on a server."""

from __future__ import annotations

import threading

import pytest

from rmem import Client
from rmem.errors import ConstraintError, NoSuchTableError, SqlError, SqlUnsupportedError


@pytest.fixture(params=["sqlite", "postgres"])
def open_client(request, tmp_path):
    opened = []

    def opening() -> Client:
        if request.param == "sqlite":
            opened.append(Client(path=tmp_path / "t.db"))
        else:
            url, name = request.getfixturevalue("tables_url"), f"w{abs(hash(tmp_path)):x}"[:20]
            opened.append(Client(path=url, workspace_id=name))
        return opened[-1]

    yield opening
    for client in opened:
        client.close()


@pytest.fixture
def client(open_client):
    client = open_client()
    client.query("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT CHECK (balance >= 0), note TEXT)")
    client.query("INSERT INTO accounts VALUES (1, 10, 'first'), (2, 0, 'second')")
    return client


def balances(client: Client) -> list[int]:
    return client.query("SELECT balance FROM accounts ORDER BY id")["balance"]


def move(client: Client, amount: int) -> None:
    client.query("UPDATE accounts SET balance = balance + $1 WHERE id = 2", [amount])
    client.query("UPDATE accounts SET balance = balance - $1 WHERE id = 1", [amount])


def test_all_statements_are_written_together(client, open_client):
    other = open_client()
    with client.transaction() as same:
        assert same is client
        move(client, 4)
        assert balances(client) == [6, 4], "it sees what it wrote"
        assert balances(other) == [10, 0], "nobody else does"
    assert balances(client) == balances(other) == [6, 4]


def test_an_exception_undoes_all_of_it(client):
    with pytest.raises(RuntimeError), client.transaction():  # noqa: PT012 - the transaction is what fails
        move(client, 4)
        raise RuntimeError
    assert balances(client) == [10, 0]
    with pytest.raises(ConstraintError), client.transaction():
        move(client, 40)
    assert balances(client) == [10, 0]
    move(client, 1)
    assert balances(client) == [9, 1]


@pytest.mark.parametrize(
    ("sql", "failure"),
    [
        ("SELECT * FROM nowhere", NoSuchTableError),
        ("SELEC 1", SqlError),
        ("SELECT 1 / (balance - balance) FROM accounts", SqlError),
        ("INSERT INTO accounts VALUES (1, 1, NULL)", ConstraintError),
    ],
)
def test_after_a_statement_that_failed_nothing_more_is_taken_or_kept(client, sql, failure):
    with pytest.raises(SqlError, match="nothing of it was written"), client.transaction():  # noqa: PT012 - the transaction is what fails
        client.query("UPDATE accounts SET balance = 5 WHERE id = 2")
        with pytest.raises(failure):
            client.query(sql)
        with pytest.raises(SqlError, match="an earlier statement"):
            client.query("SELECT 1")
        with pytest.raises(SqlError, match="an earlier statement"):
            client.ingest("more", {"x": [1]})
    assert balances(client) == [10, 0]
    assert client.list_tables() == ["accounts"]


def test_tables_views_indexes_and_ingests_take_part(client):
    with pytest.raises(RuntimeError), client.transaction():  # noqa: PT012 - the transaction is what fails
        client.ingest("runs", {"name": ["a", "b"]})
        client.create_table("empty", {"x": "INT"})
        client.query("CREATE VIEW names AS SELECT name FROM runs")
        client.create_index("accounts", "note", "btree")
        assert client.query("SELECT name FROM names ORDER BY 1")["name"] == ["a", "b"]
        assert client.list_tables() == ["accounts", "empty", "runs"]
        raise RuntimeError
    assert (client.list_tables(), client.list_views()) == (["accounts"], [])
    with client.transaction():
        client.ingest("runs", {"name": ["a", "b"]})
        client.drop_table("accounts")
    assert client.list_tables() == ["runs"]


def test_streams_see_what_the_transaction_wrote(client):
    with client.transaction():
        client.query("INSERT INTO accounts VALUES (3, 3, NULL)")
        batches = list(client.stream("SELECT id FROM accounts ORDER BY id", batch_size=2))
    assert batches == [[{"id": 1}, {"id": 2}], [{"id": 3}]]


def test_a_search_is_fine_before_the_first_write_and_refused_after_it(client):
    found = "SELECT id FROM accounts ORDER BY note <#> 'second' DESC LIMIT 1"
    with client.transaction():
        assert client.query(found) == [{"id": 2}]
        client.query("UPDATE accounts SET note = 'third' WHERE id = 2")
    with pytest.raises(SqlUnsupportedError, match="would not find what this transaction wrote"), client.transaction():  # noqa: PT012 - the transaction is what fails
        client.query("UPDATE accounts SET note = 'second' WHERE id = 1")
        client.query(found)
    assert client.query("SELECT note FROM accounts ORDER BY id")["note"] == ["first", "third"]


def test_transactions_do_not_nest(client):
    with client.transaction():
        client.query("UPDATE accounts SET balance = 1 WHERE id = 2")
        with pytest.raises(SqlError, match="do not nest"), client.transaction():
            pass
    assert balances(client) == [10, 1]


def test_each_thread_has_its_own(client):
    began, go_on = threading.Event(), threading.Event()
    seen: list[list[int]] = []

    def other() -> None:
        began.wait(10)
        seen.append(balances(client))
        go_on.set()

    thread = threading.Thread(target=other)
    thread.start()
    with client.transaction():
        move(client, 3)
        began.set()
        assert go_on.wait(10)
    thread.join()
    assert seen == [[10, 0]]
    assert balances(client) == [7, 3]


def test_sql_for_transactions_names_the_method(client):
    for sql in ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "START TRANSACTION"):
        with pytest.raises(SqlUnsupportedError, match=r"client\.transaction\(\)"):
            client.query(sql)


def test_a_server_says_what_to_do_instead(table_server):
    settings = {"api_url": table_server.url, "token": table_server.token, "workspace_id": table_server.new_workspace()}
    with (
        Client(**settings) as client,
        pytest.raises(SqlUnsupportedError, match="each statement and each ingest is one"),
    ):
        client.transaction().__enter__()
