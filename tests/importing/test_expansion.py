"""Words of a script are those that a shell would hand over: each case is also put to the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from importing_helpers import SCRIPTS

from megawrap.importing import read_script, read_text

BASH = shutil.which("bash")
RUN = "python pretrain_gpt.py --x"
# Script → the words behind --x. RUN stands for the command.
CASES = {
    'A=1\nB="$A 2"\nRUN $B': ["1", "2"],
    "B='1 2'\nRUN \"$B\"": ["1 2"],
    "RUN ${A:-3} --y ${A:+4} --z": ["3", "--y", "--z"],
    'A=(1 2)\nA+=(3)\nRUN "${A[@]}" --y ${A[1]} --z $A': ["1", "2", "3", "--y", "2", "--z", "1"],
    "A=7; RUN $((A / 2 * 2 + -7 % 3)) $((!A)) $((A > 2 && A < 8)) # --y": ["5", "0", "1"],
    "RUN a\\ b 'c d'\"e\"f": ["a b", "c def"],
    "RUN \\\n  1 \\\n  --y 2>/dev/null 2>&1 </dev/null": ["1", "--y"],
    "if false; then A=1; else A=2; fi; RUN $A": ["2"],
    "if ! [ 1 -gt 2 ] && [[ a == a || b != b ]]; then A=1; fi; RUN $A": ["1"],
    "if (( 3 > 2 )); then A=1; fi\nRUN $A": ["1"],
    "f() { A=5; }\nf\nexport A\nRUN $A": ["5"],
    # KEY=VALUE arguments, taken apart as AMD's examples do.
    'set -- SIZE=8 "B=x=y z"\nfor WORD in "$@"; do K=$(echo $WORD | cut -f1 -d=); L=${#K}; V="${WORD:$L+1}"; '
    'export "$K"="$V"; done\nRUN $SIZE --y "$B"': ["8", "--y", "x=y z"],
    "W='a  b:c d:e'; RUN $(echo $W | cut -d ':' -f 2) `echo \"$W\" | cut -d: -f1`": ["c", "d", "a", "b"],
    "W=a; X=:b; RUN $(echo $W | cut -d: -f2) --y \"$(echo ${X} | cut -d: -f1)\" --z $(echo $X | cut -d: -f9)": [
        "a", "--y", "", "--z"],
    "{ A=6; }\n( RUN $A )": ["6"],
    "A='\"q r\"'\neval RUN $A": ["q r"],
    "case a.b in x|y) A=1;; [ab].*) A=2;; *) A=3; esac\nRUN $A": ["2"],
    "case a in\n  (b) A=1 ;;\nesac\nRUN ${A-none}": ["none"],
    'for I in 1 2 3; do A="$A $I"; [ $I -lt 2 ] || break; done\nRUN $A': ["1", "2"],
    'I=0\nwhile [ $I -lt 3 ]; do I=$((I+1)); if [ $I = 2 ]; then continue; fi; A+="$I "; done\nRUN $A': ["1", "3"],
    "until true; do A=1; done\nRUN ${A:-2}": ["2"],
    "f() { [ $1 = a ] && return 1; A=$2; }\nf b c; f a d || B=1\nRUN $A --y $B": ["c", "--y", "1"],
    "A=runs/m.v1.tar; RUN ${A##*/} ${A%.*} ${A%%.*} ${A#*/}": ["m.v1.tar", "runs/m.v1", "runs/m", "m.v1.tar"],
    "A=runs/m.v1; RUN ${A/m/n} ${A//./_} ${A^^} ${#A} ${A:5:1} ${A: -2}": [
        "runs/n.v1", "runs/m_v1", "RUNS/M.V1", "9", "m", "v1"],
    'A=(a b c); RUN ${#A[@]} ${A[-1]} "${A[*]}"': ["3", "c", "a b c"],
    'set -- 4 5; shift; RUN $1 $# "$@"': ["5", "1", "5"],
    'K=A; export "$K"=7; RUN $A': ["7"],
    "N=2; bash -c 'RUN '\"$N\"''": ["2"],
    "cat <<EOF >/dev/null\nRUN 1\nEOF\nRUN 2": ["2"],
    'A="1\n2"; RUN $A "$A"': ["1", "2", "1\n2"],
    'A=; RUN "$A" $A ${A:-3} ${A-4}': ["", "3"],
    "A=${B:=5}; RUN $A $B": ["5", "5"],
    "declare -a A=(1 '2 3'); RUN \"${A[@]}\"": ["1", "2 3"],
    'A=1; [ "$A" -eq 1 ] && B="--y 2"; [ "$A" -eq 2 ] && B=; RUN $B': ["--y", "2"],
    'if [ -z "$A" ]; then A=1; elif [ "$A" = 2 ]; then A=3; fi; RUN $A': ["1"],
}  # fmt: skip


def words(script: str) -> list[str]:
    return [word.text for word in read_text(script, "train.sh", {}).arguments]


@pytest.mark.parametrize("text", CASES)
def test_expansion(text):
    assert words(text.replace("RUN", RUN)) == ["--x", *CASES[text]]


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize("text", CASES)
def test_the_real_shell_gives_the_same(tmp_path, text):
    assert printed(tmp_path, text.replace("RUN", RUN)) == ["pretrain_gpt.py", "--x", *CASES[text]]


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize("name", ["arrays", "knobs"])
def test_whole_scripts_against_the_real_shell(tmp_path, name):
    """Without what writes files, and with the same clock for both."""
    text = (SCRIPTS / f"{name}.sh").read_text(encoding="utf-8")
    for writes in ('mkdir -p "$CHECKPOINT_PATH" &&', "2>&1 | tee train.log", "|& tee $LOG_DIR/log", "echo $run_cmd\n"):
        text = text.replace(writes, "")
    text = text.replace("$(date +%s)", "today")
    file = tmp_path / "train.sh"
    file.write_text(text, encoding="utf-8")
    given = printed(tmp_path, text)
    assert given[given.index("pretrain_gpt.py") + 1 :] == [word.text for word in read_script(file, {}).arguments]


def printed(folder: Path, script: str) -> list[str]:
    """The words that programs called python and torchrun are given by the real shell."""
    assert BASH is not None
    for name in ("python", "torchrun"):
        (folder / name).write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([BASH, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=folder)
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("exec nohup time python3 -u pretrain_gpt.py --x 1", ["--x", "1"]),
        ("A=1\r\npython pretrain_gpt.py --x $A\r\n", ["--x", "1"]),  # written on Windows
        ("python pretrain_gpt.py --x 1 > log &\nwait", ["--x", "1"]),
    ],
)
def test_what_a_shell_of_this_machine_is_not_asked(text, found):
    assert words(text) == found
