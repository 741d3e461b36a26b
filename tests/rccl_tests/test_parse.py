"""Outputs of many releases and launchers, in texts of our own and, where they are, in collected samples."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from megawrap.rccl_tests.parse import parse
from megawrap.rccl_tests.perf import Placement, Row

FIXTURES = Path(__file__).parent / "fixtures"
SHARED = Path(os.environ.get("MEGAWRAP_SHARED") or Path(__file__).parents[3] / "shared") / "samples" / "bandwidth"

LARGEST = Row(
    bytes=8 << 30,
    count=2 << 30,
    type="float",
    out_of_place=Placement(seconds=pytest.approx(0.046), algbw=186.74, busbw=280.11, wrong=0),
    in_place=Placement(seconds=pytest.approx(0.0458), algbw=187.55, busbw=281.33, wrong=0),
)


def text(name):
    return (FIXTURES / name).read_text()


def only(name, collective=None):
    (run,) = parse(text(name), collective)
    return run


@pytest.mark.parametrize(
    "prefix",
    ["", "[1,0]<stdout>:", "[1,0]<stdout>: ", "Sun Nov 29 18:43:35 2026<stdout>:", "[0] ", "0: ", "[rank0]:"],
)
def test_a_complete_run_through_any_launcher(prefix):
    lines = [prefix + line for line in text("complete.txt").splitlines()]
    lines.insert(14, "[1,1]<stderr>:node-b:77:77 [1] NCCL WARN something")
    (run,) = parse("\n".join(lines))
    assert (run.collective, run.complete, run.ranks, run.problems) == ("all_reduce", True, 4, [])
    assert [row.bytes for row in run.rows] == [8, 1 << 30, 8 << 30]
    assert run.rows[-1] == LARGEST
    assert run.peak_busbw == 281.33


@pytest.mark.parametrize(
    ("name", "collective", "rows", "problems"),
    [
        ("cut.txt", "all_reduce", 3, ["no footer: the run was killed, or the output is cut off"]),
        ("hang.txt", None, 0, ["no rows: the first collective hung, or the run was killed"]),
        (
            "failure.txt",
            None,
            0,
            ["node-1: Test NCCL failure common.cu:1285 'unhandled system error'"],
        ),
    ],
)
def test_runs_that_did_not_end(name, collective, rows, problems):
    run = only(name)
    assert (run.collective, run.complete, len(run.rows), run.problems) == (collective, False, rows, problems)


def test_wrong_data():
    run = only("wrong.txt")
    assert run.collective == "all_gather"
    assert run.complete
    assert [placement.wrong for placement in run.rows[0].placements()] == [96, 1572860]
    assert run.rows[1].in_place is None
    assert run.problems == [
        "out of bounds values: 2 FAILED",
        "wrong data: 96 elements at 1M",
        "wrong data: 1572860 elements at 1M",
    ]


def test_one_placement_and_another_column():
    run = only("in_place_hipevt.txt")
    assert (run.collective, run.complete, run.ranks, run.problems) == ("all_reduce", True, None, [])
    (row,) = run.rows
    assert row.out_of_place is None
    assert row.in_place == Placement(seconds=pytest.approx(4e-5), algbw=26.21, busbw=26.21, wrong=0)
    assert row.type == "bfloat16"


def test_trailing_columns_and_time_stamps():
    run = only("algo_columns_stamped.txt", collective="all_reduce")
    (row,) = run.rows
    assert row.out_of_place == Placement(seconds=pytest.approx(4e-5), algbw=26.21, busbw=26.21, wrong=None)
    assert row.in_place == Placement(seconds=pytest.approx(4.1e-5), algbw=25.58, busbw=25.58, wrong=None)
    assert (run.collective, run.problems) == ("all_reduce", [])


def test_the_old_error_column_is_no_count():
    run = only("old_error.txt")
    assert [[placement.wrong for placement in row.placements()] for row in run.rows] == [[0, None], [None, None]]
    assert run.problems == ["out of bounds values: 2 FAILED"], "(n - 1) / n of the size is what 12 ranks count there"
    assert run.rows[0].count == 1398101


def test_milliseconds():
    run = only("milliseconds_2019.txt")
    assert run.rows[0].out_of_place == Placement(seconds=pytest.approx(0.000839), algbw=10.0, busbw=10.0, wrong=0)
    assert run.problems == []
    assert run.complete


def test_rows_without_a_header_under_titles():
    runs = parse(text("bare_rows.txt"))
    assert [run.peak_busbw for run in runs] == [319.84, 350.14]
    assert {run.collective for run in runs} == {"all_reduce"}
    assert not any(run.complete for run in runs)


def test_concatenated_runs():
    runs = parse(text("complete.txt") + text("hang.txt") + text("wrong.txt") + text("failure.txt"))
    assert [(run.collective, run.complete, len(run.rows)) for run in runs] == [
        ("all_reduce", True, 3),
        (None, False, 0),
        ("all_gather", True, 2),
        (None, False, 0),
    ]


def test_a_binary_without_mpi_is_seen():
    run = only("without_mpi.txt")
    said = "separate runs of one rank each, as when a binary built without MPI is started by mpirun"
    expected = [f"the header was printed 2 times: {said}", "one rank only: nothing crossed a link"]
    assert run.problems == expected


def test_a_rate_that_does_not_belong_to_its_time():
    (run,) = parse(text("complete.txt").replace("186.74", "286.74"))
    assert run.problems == ["algbw 286.74 GB/s at 8G is not size / time = 186.74"]


def test_a_line_that_does_not_fit_its_header():
    (run,) = parse(text("complete.txt").replace("280.11      0    45800  187.55  281.33      0", "280.11"))
    words = "8589934592 2147483648 float sum -1 46000 186.74 280.11"
    assert run.problems == [f"a line that does not fit its header: {words}"]
    assert len(run.rows) == 2


@pytest.mark.parametrize(
    ("name", "collective", "ranks", "busbw", "problems"),
    [
        (
            "report.json",
            "reduce_scatter",
            2,
            13.1072,
            ["out of bounds values: 1 FAILED", "wrong data: 2 elements at 1M"],
        ),
        ("report_flat.json", "broadcast", 4, 26.2144, []),
        ("report_short_header.csv", "alltoall", 16, 24.576, []),
    ],
)
def test_files(name, collective, ranks, busbw, problems):
    run = only(name)
    assert (run.collective, run.ranks, run.peak_busbw, run.problems) == (collective, ranks, busbw, problems)
    assert run.complete
    assert run.rows[0].out_of_place.seconds == pytest.approx(4e-5)


def test_a_line_that_another_process_wrote_into():
    (run,) = parse(text("complete.txt").replace("186.74  280.11", "186.74  28node-b:7:7"))
    words = "8589934592 2147483648 float sum -1 46000 186.74 28node-b:7:7 0 45800 187.55 281.33 0"
    assert run.problems == [f"a line that does not fit its header: {words}"]
    assert len(run.rows) == 2


def test_a_count_that_lost_its_digits():
    line = "  6291456  1.57286e+06  float  sum  -1" + 2 * "  90.00  69.91  104.86  0"
    (run,) = parse(text("complete.txt").replace("# Out of", line + "\n# Out of"))
    assert (run.rows[-1].bytes, run.rows[-1].count) == (6291456, 1572864)


def test_a_list_of_ranks_that_was_cut_short_is_not_believed():
    lines = [line for line in text("complete.txt").splitlines() if not re.match("# *Rank +[23] ", line)]
    (run,) = parse("\n".join(lines))
    assert (run.collective, run.ranks, run.peak_busbw, run.problems) == ("all_reduce", None, 281.33, [])


def test_one_mangled_row_does_not_decide_the_collective():
    nameless = "\n".join(line for line in text("complete.txt").splitlines() if "all_reduce_perf" not in line)
    (run,) = parse(nameless.replace("280.11", "180.11"))
    assert (run.collective, run.ranks) == ("all_reduce", 4)


@pytest.mark.parametrize("name", ["report.json", "report_flat.json"])
def test_a_report_that_is_cut_off(name):
    whole = text(name)
    (run,) = parse(whole[: len(whole) * 2 // 3])
    assert (run.complete, run.rows, run.problems) == (False, [], ["the report is cut off: the run was killed"])


def test_a_report_of_an_unknown_form():
    (run,) = parse('[{"numCycle": 0}]')
    assert (run.complete, run.problems) == (False, ["the report is not of a known form (KeyError: 'name')"])


def test_a_report_without_the_name_of_its_experiment():
    report = json.loads(text("report.json"))
    report["args"] = ["/opt/build/reduce_scatter_perf_mpi", "-J", "out.json"]
    for row in report["results"]:
        row.pop("experiment_name", None)
    (run,) = parse(json.dumps(report))
    assert run.collective == "reduce_scatter"


@pytest.mark.parametrize("alien", ["", "{}", "[]", "[1]", '{"a": 1}', "numCycle,collective"])
def test_nothing_in_it(alien):
    assert parse(alien) == []


def test_other_output():
    assert parse("bash: all_reduce_perf: command not found\n{not json\n") == []


def test_json_form_and_records():
    run = only("complete.txt")
    form = run.as_dict()
    assert set(form) == {"collective", "complete", "rows", "problems", "ranks", "peak_busbw"}
    assert form["rows"][2]["in_place"] == {"seconds": 0.0458, "algbw": 187.55, "busbw": 281.33, "wrong": 0}
    best = list(run.records("rccl-tests", ranks=4))[-1]
    assert (best.busbw, best.seconds, best.wrong, best.ranks, best.dtype) == (281.33, 0.0458, 0, 4, "float")


def shared(name):
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"no collected sample {path}; set MEGAWRAP_SHARED to the folder that holds samples/bandwidth")
    return parse(path.read_text())


KILLED = "no footer: the run was killed, or the output is cut off"
HUNG = "no rows: the first collective hung, or the run was killed"
FAILED = "host-1: Test NCCL failure common.cu:1285 'internal error - please report this issue to the NCCL developers'"
SAMPLES = {
    "CONSTRUCTED_nccl_J_output_v3.json": ("all_reduce", True, 1, 484.9, ()),
    "CONSTRUCTED_rccl_Z_csv_reporter_mpi_header_one_short.csv": ("all_reduce", True, 1, 356.141, ()),
    "CONSTRUCTED_rccl_Z_json_reporter.json": ("all_reduce", True, 1, 356.141, ()),
    "CONSTRUCTED_rccl_new_gfx942_fnuz_line_glued.txt": ("all_reduce", True, 1, 317.96, ()),
    "REALPREFIX_mpich_prepend_rank.txt": ("all_reduce", True, 6, 357.46, ()),
    "REALPREFIX_ompi4_tag_output.txt": ("all_reduce", True, 6, 357.46, ()),
    "REALPREFIX_ompi4_timestamp_output.txt": ("all_reduce", True, 6, 357.46, ()),
    "REALPREFIX_ompi5_tag_output_deprecated.txt": ("all_reduce", True, 6, 357.46, ()),
    "nccl_a100_1n_old_allgather.txt": (None, True, 14, 230.07, ()),
    "nccl_a100_1n_old_allreduce.txt": ("all_reduce", True, 14, 235.26, ()),
    "nccl_a100_1n_old_reduce.txt": ("reduce", True, 14, 231.28, ()),
    "nccl_a100_1n_old_reducescatter.txt": ("reduce_scatter", True, 14, 231.52, ()),
    "nccl_gb200_1440gpu_coreweave.txt": ("all_reduce", True, 6, 405.74, ()),
    "nccl_h100_64gpu_coreweave_elided.txt": ("all_reduce", True, 5, 386.56, ()),
    "nccl_rtx_old_error_column_float.txt": (None, False, 2, 0.0, (KILLED,)),
    "nccl_v100_old_noredop_error_FAILED.txt": (None, True, 4, 112.34, ("out of bounds values: 4 FAILED",)),
    "rccl_2.18.3_1rank_inplace_only_hipevt.txt": (
        "all_reduce",
        True,
        1,
        0.0,
        ("one rank only: nothing crossed a link",),
    ),
    "rccl_mi100_hang_header_only.txt": (None, False, 0, None, (HUNG,)),
    "rccl_mi210_init_failure_2023.txt": (None, False, 0, None, (FAILED,)),
    "rccl_mi300x_1n_np8_rocm63.txt": ("all_reduce", True, 6, 318.98, ()),
    "rccl_mi300x_2n_8x400g_rocm642.txt": ("all_reduce", True, 6, 357.46, ()),
    "rccl_mi350x_1n_g8_docs_elided.txt": ("all_reduce", True, 2, 367.51, ()),
    "rccl_mi350x_A1_algo_proto_channels.txt": ("all_reduce", True, 3, 365.76, ()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_collected_samples(name):
    (run,) = shared(name)
    collective, complete, rows, peak, problems = SAMPLES[name]
    assert (run.collective, run.complete, len(run.rows), run.peak_busbw) == (collective, complete, rows, peak)
    assert tuple(run.problems) == problems


def test_no_collected_sample_is_left_out():
    if not SHARED.is_dir():
        pytest.skip(f"no collected samples in {SHARED}")
    assert {path.name for path in SHARED.iterdir()} == set(SAMPLES)
