"""Coverage-guided fuzzing: bytes that reach what no bytes reached before, made into the next
ones.

    PYTHONPATH=tests python -m support.fuzzer [ROOM...] [SECONDS]

Without arguments it feeds all rooms of `support.fuzz_targets` for 60 seconds each. It begins
with what a room takes well and with all that was ever found (`tests/data/corpus/<room>/`), and
prints a row for each: inputs that were fed, edges and their counts that were reached, the
slowest input. What ends in a fault of ours, or takes more than two seconds of a processor, is
written to `tests/data/corpus/<room>/`: fix its cause, then commit it; `robustness/test_fuzz`
feeds it from then on. Needs atheris (`scripts/fuzz` installs it), and exits with 2 where that
cannot be had, with 1 where something was found.
"""

import importlib
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

TESTS_FOLDER = Path(__file__).resolve().parent
MAX_INPUT_SIZE = 64 * 1024  # bytes of an input: `support.worst_inputs` has the long ones
ROW = "{:<10} {:>11} {:>7} {:>9} {:>10}  {}"


def fuzz_target(target: str, seconds: int, folder: Path) -> None:
    """Fuzz a room in this process, which ends with it. The slowest input is told in
    `folder`/slowest.
    """
    import atheris  # noqa: PLC0415 - no other program needs it

    with atheris.instrument_imports(include=["toolcatalog"]):
        feeding = importlib.import_module("support.fuzz_targets")
    slowest = 0.0

    def item(data: bytes) -> None:
        nonlocal slowest
        took = feeding.feed(target, data)
        if took > slowest:
            slowest = took
            (folder / "slowest").write_text(f"{took:.3f} s")
        assert took < feeding.SECONDS, f"{took:.1f} seconds for {len(data)} bytes"

    (folder / "seeds").mkdir()
    for number, data in enumerate(feeding.examples(target)):
        (folder / "seeds" / str(number)).write_bytes(data)
        # what is there already is also measured without the fuzzer's ways, and loads what is loaded
        # late
        item(data)
    slowest = 0.0
    result = feeding.CORPUS / target
    result.mkdir(exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_INPUT_SIZE}",
        "-timeout=20",
        f"-artifact_prefix={result}/",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder / "seeds")], item)
    atheris.Fuzz()


def fuzz_and_report(target: str, seconds: int) -> bool:
    """Fuzz a room in a process of its own and print its row; tell whether nothing was found."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--in", folder, target, str(seconds)]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        slowest = Path(folder, "slowest")
        took = slowest.read_text() if slowest.exists() else "-"
    fed = re.findall(r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)", done.stdout, re.MULTILINE)
    reached = re.findall(r"cov: (\d+) ft: (\d+)", done.stdout) or [("-", "-")]
    text = (
        "nothing found"
        if done.returncode == 0
        else f"FOUND, see {TESTS_FOLDER.name}/corpus/{target}/"
    )
    print(
        ROW.format(
            target,
            next((item or other for item, other in reversed(fed)), "-"),
            *reached[-1],
            took,
            text,
        ),
        flush=True,
    )
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    """Fuzz what is wanted."""
    if arguments[:1] == ["--in"]:
        fuzz_target(arguments[2], int(arguments[3]), Path(arguments[1]))
    if find_spec("atheris") is None:
        print(
            "atheris is not there, and has no wheel for every machine: scripts/fuzz installs it"
            " where it has one",
            file=sys.stderr,
        )
        return 2
    seconds = next((int(word) for word in arguments if word.isdigit()), 60)
    # loaded in a process that fuzzes, it must be loaded by the fuzzer
    from support.fuzz_targets import TARGETS  # noqa: PLC0415

    expected = [word for word in arguments if not word.isdigit()] or [*TARGETS]
    print(ROW.format("room", "fed", "edges", "features", "slowest", ""))
    sound = [fuzz_and_report(available, seconds) for available in expected]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
