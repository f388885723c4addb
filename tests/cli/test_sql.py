"""`rmem sql`: statements from the command line, a file or a pipe; answers as a table, JSON, CSV or TSV."""

from __future__ import annotations

import csv
import io

import pytest
from running_server import Running

from rmem.server.settings import ServerSettings


@pytest.fixture
def filled(rmem):
    script = """
        CREATE TABLE runs (id INT PRIMARY KEY, name TEXT, took FLOAT8, meta JSONB, tags TEXT[]);  -- a comment; here
        INSERT INTO runs VALUES (1, 'a;b', 0.5, '{"k": [1]}', '{x,y}'), (2, '', NULL, NULL, NULL);
    """
    assert rmem("sql", input=script).code == 0
    return rmem


def test_rows_are_a_table_with_numbers_to_the_right(filled):
    answer = filled("sql", "SELECT id, name, took FROM runs ORDER BY id DESC")
    assert answer.lines == ["id  name  took", " 2", " 1  a;b   0.5"]
    assert answer.err == "(2 rows)\n"
    shown = filled.terminal("sql", "SELECT name, id FROM runs WHERE id = 1").out
    assert "name" in shown
    assert "a;b" in shown


def test_json_is_one_document(filled):
    answer = filled("sql", "SELECT id, meta, tags, DATE '2026-05-01' AS day FROM runs ORDER BY id LIMIT 1", "--json")
    row = {"id": 1, "meta": {"k": [1]}, "tags": ["x", "y"], "day": "2026-05-01"}
    assert answer.json == {"columns": ["id", "meta", "tags", "day"], "rows": [row], "row_count": 1}


def test_csv_tells_nothing_from_an_empty_text(filled):
    answer = filled("sql", "SELECT id, name, took, meta FROM runs ORDER BY id", "--csv")
    assert answer.out == 'id,name,took,meta\n1,a;b,0.5,"{""k"": [1]}"\n2,"",,\n'
    assert [len(row) for row in csv.reader(io.StringIO(answer.out))] == [4, 4, 4]
    assert filled("sql", "SELECT id, name FROM runs WHERE id = 1", "--tsv").out == "id\tname\n1\ta;b\n"
    assert filled("sql", "SELECT id FROM runs WHERE false", "--csv").out == "id\n"


def test_values_are_parameters(filled):
    assert (
        filled("sql", "SELECT id FROM runs WHERE name = $1 AND id < $2", "-p", "a;b", "-p", "2", "--csv").out
        == "id\n1\n"
    )
    assert filled("sql", "SELECT id FROM runs WHERE id = :id", "--set", "id=2", "--csv").out == "id\n2\n"


def test_a_statement_comes_from_a_file_or_standard_input(filled, tmp_path):
    (tmp_path / "q.sql").write_text("SELECT count(*) AS n FROM runs;")
    for arguments, typed in (
        (("--file", "q.sql"), None),
        (("-",), "SELECT count(*) AS n FROM runs"),
        ((), "SELECT 2 AS n"),
    ):
        assert filled("sql", *arguments, "--csv", input=typed).out == "n\n2\n"


def test_of_several_statements_all_run_and_the_last_is_told(filled):
    script = "INSERT INTO runs (id) VALUES (3); SELECT 'a;b' AS x; SELECT count(*) AS n FROM runs"
    assert filled("sql", script, "--json").json["rows"] == [{"n": 3}]
    answer = filled("sql", "DELETE FROM runs WHERE id = 3; SELECT count(*) AS n FROM runs")
    assert (answer.out, answer.err) == ("n\n2\n", "1 row written\n(1 row)\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("SELEC 1",), 2, "cannot be read"),
        (("SELECT * FROM nowhere",), 3, '"nowhere" does not exist'),
        (("INSERT INTO runs (id) VALUES (1)",), 2, "unique constraint"),
        (("SELECT to_char(now(), 'YYYY')",), 2, "to_char() is not supported here"),
        (("SELECT $1", "-p", "1", "--set", "a=1"), 2, "give one of them"),
        (("SELECT 1; SELECT $1", "-p", "1"), 2, "parameters go with one statement"),
        (("SELECT 1", "--json", "--csv"), 2, "--json does not go with"),
        ((";",), 2, "there is no statement"),
        (("SELECT 1", "--file", "q.sql"), 2, "q.sql"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_its_exit_code(filled, arguments, code, words):
    answer = filled("sql", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


def test_another_store_and_a_server(filled, tmp_path, monkeypatch):
    assert filled("sql", "CREATE TABLE t AS SELECT 5 AS n", "--store", str(tmp_path / "other.db")).code == 0
    assert filled("sql", "SELECT n FROM t", "--store", str(tmp_path / "other.db"), "--csv").out == "n\n5\n"
    server = Running(ServerSettings(data=tmp_path / "server")).start()
    try:
        monkeypatch.setenv("RMEM_API_KEY", server.first_token)
        assert filled("sql", "--store", server.url, "CREATE TABLE t (n INT); INSERT INTO t VALUES (1), (2)").code == 0
        for arguments, url in ((("--store", server.url), ""), ((), server.url)):
            monkeypatch.setenv("RMEM_API_URL", url)
            assert filled("sql", "SELECT n FROM t ORDER BY n", "--csv", *arguments).out == "n\n1\n2\n"
        assert filled("sql", "SELECT n FROM t", "--workspace", "nowhere").code == 4
    finally:
        server.stop()


def test_statements_that_define_tables_count_no_rows(rmem):
    assert rmem("sql", "CREATE TABLE t (a INT)").err == "CREATE TABLE done\n"
    assert rmem("sql", "UPDATE t SET a = 1").err == "0 rows written\n"
    assert rmem("sql", "CREATE TABLE u AS SELECT 1 AS b").err == "1 row written\n"
    assert rmem("sql", "DROP TABLE t").err == "DROP TABLE done\n"
    assert "has 1 parameter (up to $1)" in rmem("sql", "SELECT $1").err
