"""SQL queries of lakes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'steptime[query]'")

from fleet import program, trace  # noqa: E402
from steptime import querying as queries  # noqa: E402
from steptime.querying import QueryError, ask, main, query, questions  # noqa: E402


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs of two ranks. In both, rank 1 arrives last at each all-reduce; in the second, its kernel is slower."""
    folder = tmp_path_factory.mktemp("fleet")
    for run, slow in (("monday", 10.0), ("tuesday", 30.0)):
        (folder / run).mkdir()
        (folder / run / "a.json").write_text(trace(0, [100.0, 120.0, 100.0]))
        (folder / run / "b.json").write_text(trace(1, [20.0, 20.0, 20.0], slow))
    made = folder / "it's a [lake]"
    subprocess.run([program(), "ingest", folder / "monday", folder / "tuesday", "-o", made], check=True, capture_output=True)
    return made


def test_tables_have_the_run_and_the_rank(lake: Path) -> None:
    rows = query(lake, "select run, rank, count(*), sum(dur_ns) from steps group by all order by all").rows()
    assert rows == [(run, rank, 3, 3_000_000) for run in ("monday", "tuesday") for rank in (0, 1)]
    assert query(lake, "select sum(count) from kernels where collective").rows() == [(12,)]
    assert query(lake, "select distinct in_bytes, group_name, op from collectives").rows() == [(4000, "0", "allreduce")]


def test_the_rank_that_comes_last_is_the_straggler(lake: Path) -> None:
    rows = {(row[0], row[1]): row[2:] for row in ask(lake, "stragglers").rows()}
    # Rank 0 waits 80, 100 and 80 us for rank 1: 0.087 ms a step.
    assert rows["monday", 1] == (3, 3, 0.087, 0.0)
    assert rows["monday", 0] == (0, 3, 0.0, 0.087)


def test_regressions_and_slow_kernels_name_the_kernel(lake: Path) -> None:
    worst = dict(zip(ask(lake, "regressions").columns, ask(lake, "regressions").rows()[0]))
    # The mean rank's kernel took 10 us, and then 20 us.
    assert (worst["before"], worst["after"], worst["name"]) == ("monday", "tuesday", "gemm")
    assert (worst["before_ms"], worst["after_ms"], worst["more_ms_a_step"]) == (0.01, 0.02, 0.01)
    slow = ask(lake, "slow-kernels").rows()[0]
    assert slow[:5] == ("tuesday", 1, "gemm", 30.0, 20.0)


def test_percentiles_come_from_merged_sketches(lake: Path) -> None:
    rows = {(row[0], row[1]): row for row in ask(lake, "kernels").rows()}
    columns = ask(lake, "kernels").columns
    gemm = dict(zip(columns, rows["tuesday", "gemm"]))
    assert gemm["count"] == 6
    assert gemm["p50_us"] == pytest.approx(10.0, rel=0.011)
    assert gemm["p99_us"] == pytest.approx(30.0, rel=0.011)


@pytest.mark.parametrize("name", sorted(questions()))
def test_every_question_is_answered(lake: Path, name: str) -> None:
    assert questions()[name]
    assert ask(lake, name).columns
    rows = ask(lake, name).rows()
    # No step here takes longer than the others; all else finds something.
    assert rows or name == "slow-steps"


def test_answers_go_to_other_libraries(lake: Path) -> None:
    answer = query(lake, "select run, rank from steps")
    assert "rank" in repr(answer) and answer.columns == ["run", "rank"]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert isinstance(answer.to_pandas(), pandas.DataFrame)
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert polars.DataFrame(query(lake, "select run, rank from steps")).shape == (12, 2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["selec"], "the SQL failed"),
        (["select nothing from steps"], "nothing"),
        (["/* nothing */"], "use a single SELECT"),
        (["--ask", "who"], "unknown question 'who'; known are collectives, "),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    lake: Path, capsys: pytest.CaptureFixture[str], asked: list[str], said: str
) -> None:
    assert main([str(lake), *asked]) == 1
    out, complaint = capsys.readouterr()
    assert out == "" and complaint.count("\n") == 1 and said in complaint


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{lake}/run=monday/rank=0/steps.parquet'",
        "copy (select 1) to '{folder}/file'",
        "attach '{folder}/x.db'",
        "attach '{lake}/x.db'",
        "export database '{lake}/x'",
        "select * from read_text('{folder}/secret')",
        "install httpfs",
        "set threads = 1",
        "create table t as select 1",
        "select 1; copy (select 1) to '{folder}/file'",
    ],
)
def test_sql_reads_the_lake_and_nothing_else(lake: Path, tmp_path: Path, sql: str) -> None:
    (tmp_path / "secret").write_text("secret")
    before = sorted((path, path.stat().st_size) for path in lake.rglob("*"))
    with pytest.raises(QueryError):
        query(lake, sql.format(lake=str(lake).replace("'", "''"), folder=tmp_path)).rows()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert sorted((path, path.stat().st_size) for path in lake.rglob("*")) == before


def test_a_damaged_table_is_said_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for rank in (0, 4_000_000_000):
        (tmp_path / "run" / f"{rank}.json").write_text(trace(rank, [100.0]))
    made = tmp_path / "lake"
    subprocess.run([program(), "ingest", tmp_path / "run", "-o", made], check=True, capture_output=True)
    assert query(made, "select rank from steps order by rank").rows() == [(0,), (4_000_000_000,)]
    (made / "run=run" / "rank=0" / "gaps.parquet").write_bytes(b"")
    assert query(made, "select count(*) from steps").rows() == [(2,)]
    with pytest.raises(QueryError, match="gaps cannot be read .*: ingest the run again"):
        query(made, "select * from gaps")
    assert main([str(made), "--list"]) == 0
    renamed = made.rename(tmp_path / "la\\ke")
    with pytest.raises(QueryError, match="backslash"):
        query(renamed, "select 1")


def test_cells_of_csv_steer_nothing(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select '=1+1' as a, chr(27) || '[31m' || chr(8238) as b, -1 as c, '-x' as d"
    assert main([str(lake), sql, "--csv"]) == 0
    assert capsys.readouterr().out == "a,b,c,d\n'=1+1,\ufffd[31m\ufffd,-1,'-x\n"


def test_what_is_no_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="is not a lake of steptime"):
        query(tmp_path, "select 1")
    mark = tmp_path / "_steptime.json"
    mark.write_text('{"steptime_lake": 0}')
    with pytest.raises(QueryError, match="a lake of version 0, and this steptime reads 2"):
        query(tmp_path, "select 1")
    mark.write_text(json.dumps({"steptime_lake": queries.VERSION}))
    with pytest.raises(QueryError, match="has no ranks yet"):
        query(tmp_path, "select 1")


def test_the_command_prints_tables_json_and_csv(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select run, count(*) as steps from steps group by run order by run"
    assert main([str(lake), sql]) == 0
    assert capsys.readouterr().out == "run      steps\nmonday       6\ntuesday      6\n"
    assert main([str(lake), sql, "--csv"]) == 0
    assert capsys.readouterr().out == "run,steps\nmonday,6\ntuesday,6\n"
    assert main([str(lake), sql, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == [{"run": "monday", "steps": 6}, {"run": "tuesday", "steps": 6}]
    assert main([str(lake), "--list"]) == 0
    listed = capsys.readouterr().out
    assert "stragglers" in listed and "comm_exposed_ns" in listed
