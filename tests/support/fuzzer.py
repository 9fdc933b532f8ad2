"""Coverage-guided fuzzing of the parsers of untrusted input.

    PYTHONPATH=tests python -m support.fuzzer [TARGET...] [SECONDS]

The default is every target of `support.fuzz_targets`, 60 seconds each. The seeds are valid inputs
and all inputs that once failed (`tests/data/corpus/<target>/`). Prints a row for each target: the
number of inputs, the edges and features reached, and the slowest input. An input that causes an
internal error, or takes more than two seconds of CPU time, is written to
`tests/data/corpus/<target>/`: fix the cause and commit the file, and `robustness/test_fuzz` runs it
from then on. Needs atheris, which `scripts/fuzz` installs. Exits with 1 if it finds a fault, and
with 2 without atheris.
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
    """Fuzz a target and end this process. Writes the time of the slowest input to
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
        # also measured without the fuzzer; loads modules that are imported late
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
    """Fuzz a target in another process and print its row. Return True if it found no fault."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--in", folder, target, str(seconds)]
        result = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        slowest = Path(folder, "slowest")
        took = slowest.read_text() if slowest.exists() else "-"
    fed = re.findall(
        r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)", result.stdout, re.MULTILINE
    )
    reached = re.findall(r"cov: (\d+) ft: (\d+)", result.stdout) or [("-", "-")]
    text = (
        "nothing found"
        if result.returncode == 0
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
    if result.returncode:
        print(result.stdout[-4000:], file=sys.stderr)
    return result.returncode == 0


def main(arguments: list[str]) -> int:
    """Fuzz the named targets, or all."""
    if arguments[:1] == ["--in"]:
        fuzz_target(arguments[2], int(arguments[3]), Path(arguments[1]))
    if find_spec("atheris") is None:
        print(
            "atheris is not installed: run scripts/fuzz, which installs it if there is a wheel",
            file=sys.stderr,
        )
        return 2
    seconds = next((int(word) for word in arguments if word.isdigit()), 60)
    # in a process that fuzzes, atheris must import it
    from support.fuzz_targets import TARGETS  # noqa: PLC0415

    expected = [word for word in arguments if not word.isdigit()] or [*TARGETS]
    print(ROW.format("target", "inputs", "edges", "features", "slowest", ""))
    sound = [fuzz_and_report(available, seconds) for available in expected]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
