"""``calibrate adapter``: a helpful adapter is saved and used everywhere; others and damaged files are refused."""

import csv
import io
import json
import math
import struct
import tracemalloc
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.assess import composed
from agenticiqa.programs.batch.plan_run import run_settings
from agenticiqa.programs.cli.status import OK, SOME_FAILED, USAGE
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.graph import executor_node, planner_node, summarizer_node
from agenticiqa.programs.tools.adapter import write_adapter
from agenticiqa.programs.tools.metrics.learned_iqa import adapter_in
from support.distortion_levels import scene

IMAGES = 40


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic scenes with increasing red, and labels that increase with it."""
    folder = tmp_path_factory.mktemp("album")
    rng = np.random.default_rng(0)
    with (folder / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "mos", "raters"])
        for number in range(IMAGES):
            red = float(rng.uniform())
            pixels = scene(96, 128, number).astype(float)
            pixels[..., 1:] *= 1 - 0.8 * red
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
            rows.writerow([f"{number}.png", round(20 + 60 * red + rng.normal(0, 4), 2), 9])
    return folder


@pytest.fixture(scope="module")
def fitted(album: Path) -> Path:
    """An adapter that was fitted to these labels."""
    assert main(["calibrate", "adapter", str(album / "labels.csv"), "--out", str(album / "mine.npz")]) == OK
    return album / "mine.npz"


def written(file: Path, header: str, rows: list[list[object]]) -> Path:
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return file


def labels_of(album: Path) -> dict[str, float]:
    with (album / "labels.csv").open() as file:
        return {row["image"]: float(row["mos"]) for row in csv.DictReader(file)}


def test_the_adapter_records_its_training_images(fitted: Path) -> None:
    adapter = adapter_in(fitted)
    assert adapter.about["labels"] == IMAGES == len(adapter.about["images"])
    assert fitted.stat().st_size < 100_000


def test_every_interface_gives_the_same_adapted_score(album: Path, fitted: Path, capsys: pytest.CaptureFixture) -> None:
    image, other = str(album / "3.png"), scene(96, 128, 99)
    Image.fromarray(other).save(album / "new.png")
    result = AgenticIQA.offline(adapter=fitted)(image)
    assert result.quality_score != AgenticIQA.offline()(image).quality_score
    low, high = AgenticIQA.offline(adapter=fitted)(str(album / "new.png")).summarizer_result.score_interval["80"]
    assert high - low <= 2 * 1.2816 * adapter_in(fitted).about["spread"] + 1e-6
    config = album / "mine.yaml"
    config.write_text("adapter: mine.npz\n")
    for way in (["--adapter", str(fitted)], ["--config", str(config)]):
        capsys.readouterr()
        assert main(["assess", image, "--json", *way]) == OK
        row = json.loads(capsys.readouterr().out)
        assert row["quality_score"] == result.quality_score
        (call,) = row["executor_evidence"]["tool_log"]
        assert call["adapted"]["digest"] == adapter_in(fitted).about["digest"]
        assert call["adapted"]["this_one"]
    state = {"query": "Rate it.", "image_path": image}
    for node in (planner_node, executor_node, summarizer_node):
        state |= node(state, {"configurable": {"config": str(config)}})
    assert state["summarizer_result"].quality_score == result.quality_score
    policy = album / "policy.yaml"
    policy.write_text("min_score: 1\n")
    capsys.readouterr()
    assert main(["gate", image, "--policy", str(policy), "--adapter", str(fitted), "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["images"][0]["measured"]["score"] == result.quality_score


def test_with_a_reference_nothing_changes(album: Path, fitted: Path) -> None:
    image, reference = str(album / "3.png"), str(album / "new.png")
    Image.fromarray(scene(96, 128, 3)).save(reference)
    scores = [AgenticIQA.offline(adapter=each)(image, reference=reference).quality_score for each in (None, fitted)]
    assert scores[0] == scores[1]


def test_a_run_records_its_adapter_and_counts_its_training_images(
    album: Path, fitted: Path, capsys: pytest.CaptureFixture
) -> None:
    plain, adapted = (Config(adapter=each) for each in (None, str(fitted)))
    settings = [run_settings(AgenticIQA.from_config(config), config) for config in (plain, adapted)]
    assert "adapter" not in settings[0]["config"]
    assert settings[1]["config"]["adapter"] == adapter_in(fitted).about["digest"]
    tool = composed(adapted).executor.toolbox["LEARNED-IQA"]
    assert tool.adapter.about["error"] < 1
    run = album / "run"
    status = main(["evaluate", str(album / "labels.csv"), "--adapter", str(fitted), "--limit", "5", "--out", str(run)])
    assert status == OK
    capsys.readouterr()
    assert main(["report", str(run)]) == OK
    assert "adapter 5" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["shuffled", "constant", "few"])
def test_labels_that_do_not_help_are_refused(album: Path, kind: str, capsys: pytest.CaptureFixture) -> None:
    labels = labels_of(album)
    mos = [*np.random.default_rng(1).permutation([*labels.values()])]
    rows = {"shuffled": zip(labels, mos, strict=True), "constant": ((n, 50) for n in labels)}.get(kind)
    chosen = [[*row] for row in rows or [*labels.items()][:9]]
    file, out = written(album / f"{kind}.csv", "image,mos", chosen), album / f"{kind}.npz"
    words = ["calibrate", "adapter", str(file), "--out", str(out), "--mos-range", "0", "100"]
    assert main(words) == SOME_FAILED
    printed = capsys.readouterr().out
    assert "Not saved" in printed
    assert not out.exists()
    if kind == "shuffled":
        assert "smaller error (99%; the intervals above have 95 %)" in printed
        assert main([*words, "--save-anyway"]) == OK
        assert len(adapter_in(out).about["images"]) == len(chosen)


@pytest.mark.parametrize("shared", [False, True])
def test_pairwise_comparisons_are_accepted_as_labels(album: Path, shared: bool, capsys: pytest.CaptureFixture) -> None:
    labels = labels_of(album)
    rng, names = np.random.default_rng(0), [*labels]
    chosen = (
        [rng.choice(names, 2, replace=False) for _ in range(100)]
        if shared
        else [*zip(names[::2], names[1::2], strict=True)]
    )
    rows = [sorted(pair, key=labels.__getitem__, reverse=True) for pair in chosen]
    file, out = written(album / f"pairs{shared}.csv", "better,worse", rows), album / f"pairs{shared}.npz"
    assert main(["calibrate", "adapter", str(file), "--out", str(out)]) == OK
    assert "pairs ranked correctly" in capsys.readouterr().out
    shown = AgenticIQA.offline(adapter=out)
    best, worst = max(labels, key=labels.__getitem__), min(labels, key=labels.__getitem__)
    assert shown(str(album / best)).quality_score > shown(str(album / worst)).quality_score
    turned = written(
        album / "turned.csv",
        "better,worse",
        [[row[number % 2], row[1 - number % 2]] for number, row in enumerate(rows)],
    )
    assert main(["calibrate", "adapter", str(turned), "--out", str(out), "--force"]) == SOME_FAILED


def test_more_labels_cost_only_the_new_images(album: Path, fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agenticiqa.eval.commands import calibrate_adapter

    words = ["--out", str(album / "more.npz"), "--force"]
    assert main(["calibrate", "adapter", str(album / "labels.csv"), *words]) == OK
    calls, original = [], calibrate_adapter.mos_and_features
    monkeypatch.setattr(calibrate_adapter, "mos_and_features", lambda pixels: calls.append(pixels) or original(pixels))
    Image.fromarray(scene(96, 128, 77)).save(album / "one_more.png")
    file = written(album / "more.csv", "image,mos", [*map(list, labels_of(album).items()), ["one_more.png", 30]])
    assert main(["calibrate", "adapter", str(file), *words]) == OK
    assert len(calls) == 1


def ratings_of(album: Path, name: str, *, noise: float, bias: float = 0.0, repeats: int = 6) -> Path:
    """Write the ratings of a person, in half steps, as the page of ``agenticiqa rate`` does."""
    rng, rows = np.random.default_rng(len(name)), list[list[object]]()
    for number, (image, mos) in enumerate(labels_of(album).items()):
        for repeat in range(1 + (number < repeats)):
            rating = np.clip(round(2 * (1 + mos / 25 + bias + rng.normal(0, noise))) / 2, 1, 5)
            rows.append([image, rating, name, 2.5, repeat])
    return written(album / f"labels-{name}.csv", "image,mos,rater,seconds,repeat", rows)


@pytest.mark.slow
def test_ratings_of_one_person_become_an_adapter(
    album: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings_of(album, "anna", noise=0.3)
    monkeypatch.chdir(album.parent)
    folder = album.name
    assert main(["calibrate", "adapter", f"{folder}/labels-anna.csv", "--out", "mine.npz"]) == OK
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("anna: 40 ratings, agreement with oneself 0.")
    assert printed[0].endswith(" (6 repeats)")
    assert printed[1].startswith("The highest SRCC that a scorer can reach on these labels is about 0.")
    assert printed[1].endswith("] (ceiling, from 6 repeats).")
    use = f'Use it: agenticiqa assess {folder} --adapter mine.npz --html sheet.html (in a configuration: "adapter:'
    assert printed[-1] == f'{use} mine.npz")'
    command = printed[-1].removeprefix("Use it: agenticiqa ").partition(" (")[0].split()
    assert main([*command, "--workers", "1"]) == OK
    assert Path("sheet.html").is_file()


def test_ratings_of_several_people_are_merged_for_the_adapter_and_all_commands(
    album: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    files = [ratings_of(album, "anna", noise=0.3, bias=0.5), ratings_of(album, "benjamin", noise=0.4)]
    files.append(ratings_of(album, "chance", noise=20, repeats=0))
    out, table = tmp_path / "mine.npz", tmp_path / "more" / "merged.csv"
    words = ["calibrate", "adapter", *map(str, files), "--out", str(out), "--mos-out", str(table)]
    assert main(words) == OK
    printed, messages = capsys.readouterr()
    assert [line.partition(":")[0] for line in printed.splitlines()[:2]] == ["anna", "benjamin"]
    assert ", SRCC with the others 0." in printed
    assert "(ceiling, from 12 repeats)." in printed
    assert "the ratings of chance are not used: no clear agreement with others or oneself (40 rat" in messages
    assert f"The MOS of 40 images were written to {table}" in messages
    with table.open() as file:
        rows = [*csv.DictReader(file)]
    assert {row["raters"] for row in rows} == {"2"}
    assert main(words) == USAGE
    assert f"{out} already exists" in capsys.readouterr().err
    out.unlink()
    assert main(words) == USAGE
    assert f"{table} already exists: name another file, or add --force" in capsys.readouterr().err
    assert main([*words, "--force", "--keep-raters", "--save-anyway"]) == OK
    with table.open() as file:
        assert {row["raters"] for row in csv.DictReader(file)} == {"3"}
    run = tmp_path / "run"
    assert main(["evaluate", str(table), "--scorer", "PIQE", "--limit", "5", "--out", str(run)]) == OK
    first = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    with table.open() as file:
        assert first["mos"] == pytest.approx(float(next(csv.DictReader(file))["mos"]))


def test_ratings_that_do_not_help_are_refused_with_the_reason(
    album: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = ratings_of(album, "chance", noise=20)
    assert main(["calibrate", "adapter", str(file), "--out", str(tmp_path / "mine.npz")]) == SOME_FAILED
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].startswith("chance: 40 ratings, agreement with oneself ")
    assert "Not saved: these 40 labels do not clearly improve" in printed
    assert "More labels may help: one person needed about 100 for AI-generated images and 150 for photos." in printed


def test_several_tables_of_pairs_are_one_set_without_mos(
    album: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    labels = labels_of(album)
    names = sorted(labels, key=labels.__getitem__, reverse=True)
    pairs = [*zip(names[:20], names[20:], strict=True)]
    equal = [[names[0], names[1], "ben", 2.0], [names[1], names[0], "ben", 2.0]]
    files = [
        written(album / "pairs-anna.csv", "better,worse,rater,seconds", [[*pair, "anna", 2.0] for pair in pairs]),
        written(album / "pairs-ben.csv", "better,worse,rater,seconds", equal),
    ]
    words = ["calibrate", "adapter", *map(str, files), "--out", str(tmp_path / "mine.npz")]
    assert main([*words, "--mos-out", str(tmp_path / "mos.csv")]) == USAGE
    assert "comparisons have no MOS; remove it" in capsys.readouterr().err
    assert main(words) == OK
    assert adapter_in(tmp_path / "mine.npz").about["labels"] == 22
    written(files[1], "better,worse", [[names[0], names[0]]])
    assert main([*words, "--force"]) == USAGE
    assert "pairs-ben.csv, line 2: better is" in capsys.readouterr().err


def damaged(content: bytes, how: str) -> bytes:
    changed = content[:9000] + bytes(64) + content[9064:]
    return {"cut short": content[: len(content) // 2], "text": b"adapter", "changed": changed}[how]


KINDS_OF_DAMAGE = ("cut short", "text", "changed", "other arrays", "pickled", "another scorer", "missing")


@pytest.mark.parametrize("how", KINDS_OF_DAMAGE)
def test_a_file_that_is_not_an_adapter_of_this_scorer_is_refused_in_one_line(
    how: str, fitted: Path, tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "bad.npz"
    arrays = dict(np.load(fitted))
    if how == "other arrays":
        np.savez(file, weights=arrays["weights"])
    elif how == "pickled":
        np.savez(file, **{**arrays, "about": np.array([{"scorer": 1}], dtype=object)})
    elif how == "another scorer":
        write_adapter(file, arrays["weights"], {**adapter_in(fitted).about, "scorer": "0" * 64})
    elif how != "missing":
        file.write_bytes(damaged(fitted.read_bytes(), how))
    capsys.readouterr()
    assert main(["assess", str(examples / "astronaut.webp"), "--adapter", str(file)]) == USAGE
    message = capsys.readouterr().err.strip()
    assert "bad.npz" in message
    assert len(message.splitlines()) == 1
    with pytest.raises(UserError, match="scorer of another version" if how == "another scorer" else r"bad\.npz"):
        AgenticIQA.offline(adapter=file)


def one_array(shape: str, kind: str = "<f4", content: bytes = b"", packing: int = ZIP_DEFLATED) -> bytes:
    """Return an ``.npz`` file with a single member, whose header can claim anything."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n".encode()
    file = io.BytesIO()
    with ZipFile(file, "w", packing) as archive:
        archive.writestr("weights.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + content)
    return file.getvalue()


ZEROS = bytes(2**26 + 1)
NOT_READ = {
    "unpacks to": one_array("16777217,", content=ZEROS),
    "stored or deflated": one_array("4096,", content=bytes(2**14), packing=ZIP_BZIP2),
    "size 0 into shape": one_array("1000000000000,"),
    "expected arrays of real numbers": one_array("1,", "<c8", bytes(8)),
    "damaged": one_array("1,", "<f9", bytes(4)),
    "more than 100 members": b"PK\1\2" * 101,
}


@pytest.mark.parametrize("why", NOT_READ)
def test_an_array_file_is_checked_before_it_is_unpacked(why: str, tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(NOT_READ[why])
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=rf"bad\.npz: damaged, or not an adapter \([^\n]*{why}[^\n]*\Z"):
            adapter_in(tmp_path / "bad.npz")
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


ADAPTER_FAULTS = {
    "a scalar": (lambda weights: weights[0], {}, "finite weights of float32"),
    "a row": (lambda weights: weights[None], {}, "finite weights of float32"),
    "booleans": (lambda weights: weights > 0, {}, "real numbers"),
    "complex": (lambda weights: weights.astype(np.complex64), {}, "real numbers"),
    "double": (lambda weights: weights.astype(float), {}, "finite weights of float32"),
    "text": (lambda weights: weights.astype("U8"), {}, "finite weights of float32"),
    "too few": (lambda weights: weights[1:], {}, "finite weights of float32"),
    "NaN": (lambda weights: weights * np.float32("nan"), {}, "finite weights of float32"),
    "infinity": (lambda weights: weights + np.float32("inf"), {}, "finite weights of float32"),
    "weights that overflow": (lambda weights: weights * 0 + np.float32(3e38), {}, r"magnitude 3e\+38, at most 100"),
    "a weight below the scale": (lambda weights: weights * 0 - np.float32(1e4), {}, "magnitude 10000, at most 100"),
    "an absurd level": (None, {"level": 1e308}, "about: level"),
    "an absurd share": (None, {"shipped": -1e308}, "about: shipped"),
    "a spread without a square": (None, {"spread": 1e200}, "about: spread"),
    "an error of no size": (None, {"error": 1e-200}, "about: error"),
    "negative spread": (None, {"spread": -1.0}, "about: spread"),
    "spread NaN": (None, {"spread": math.nan}, "about: spread"),
    "infinite level": (None, {"level": math.inf}, "about: level"),
    "level as text": (None, {"level": "3"}, "about: level"),
    "share as boolean": (None, {"shipped": True}, "about: shipped"),
    "another key": (None, {"more": 1}, "about: unknown key 'more'"),
    "no digests": (None, {"images": ["a.png"]}, "about: images"),
}


@pytest.mark.parametrize("fault", ADAPTER_FAULTS)
def test_an_adapter_with_its_digest_and_other_values_is_refused_when_read(
    fault: str, fitted: Path, tmp_path: Path
) -> None:
    change, more, message = ADAPTER_FAULTS[fault]
    adapter, file = adapter_in(fitted), tmp_path / "bad.npz"
    weights = change(adapter.weights) if change else adapter.weights
    write_adapter(file, weights, {key: more.get(key, value) for key, value in adapter.about.items()} | more)
    with pytest.raises(UserError, match=rf"bad\.npz: damaged, or not an adapter \([^\n]*{message}[^\n]*\Z"):
        adapter_in(file)


@pytest.mark.parametrize("key", ["level", "spread", "kinds", "labels", "images", "scorer"])
def test_an_adapter_without_a_key_is_refused_when_read(key: str, fitted: Path, tmp_path: Path) -> None:
    adapter, file = adapter_in(fitted), tmp_path / "bad.npz"
    write_adapter(file, adapter.weights, {name: value for name, value in adapter.about.items() if name != key})
    with pytest.raises(UserError, match=f"about: {key}: Field required"):
        adapter_in(file)


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("better,worse", ["0.png", "0.png"], "name two different images"),
        ("better,worse", ["0.png", "gone.png"], "gone.png; name two"),
        ("image,mos,raters", ["0.png", "1", "-3"], "raters"),
        ("image,mos", ["text.png", "1"], "text.png"),
    ],
)
def test_unusable_labels_are_reported(
    header: str, row: list[str], message: str, album: Path, capsys: pytest.CaptureFixture
) -> None:
    (album / "text.png").write_text("no image")
    rows: list[list[object]] = [[f"{n}.png", n % 5 + 1] + [1] * header.count("raters") for n in range(1, 20)]
    if "better" in header:
        rows = [[f"{n}.png", f"{n + 1}.png"] for n in range(1, 20)]
    file = written(album / "bad.csv", header, [*rows, [*row]])
    assert main(["calibrate", "adapter", str(file), "--out", str(album / "none.npz")]) == USAGE
    assert message in capsys.readouterr().err


def test_results_of_a_run_are_no_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "results.jsonl"
    rows.write_text(json.dumps({"image": "a.png", "query": "Rate it.", "mos": 3.0}) + "\n")
    assert main(["calibrate", "adapter", str(rows), "--out", str(tmp_path / "out")]) == USAGE
    assert f"{rows} has results of a run, not labels: name the table of labels" in capsys.readouterr().err
