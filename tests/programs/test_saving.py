"""Tuned prompts on disk: what is loaded, what is refused, and what is never written."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import STAGES, Config, StageConfig
from agenticiqa.programs import saving
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.errors import BackendError, StateError, UserError
from agenticiqa.programs.stages.ask import SAVED_END, SAVED_START, CheckedPredict
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion
from support.engine import scripted_lm
from support.simulated_tuning import SCORER


class Program(dspy.Module):
    """Two predictors; the first one's signature can be another."""

    def __init__(self, first: type[dspy.Signature] = AnswerQuestion) -> None:
        super().__init__()
        self.answer = CheckedPredict(first, stage="answering")
        self.judge = CheckedPredict(DecideReplan, stage="replan")


def tuned() -> Program:
    program = Program()
    predict = program.answer.predict
    predict.signature = predict.signature.with_instructions("Look twice, naïvely.")
    predict.demos = [
        dspy.Example(
            query="Sharp?", answer=Answer(final_answer="Yes", quality_reasoning="Crisp edges."), augmented=True
        )
    ]
    return program


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    saving.save(tuned(), path, {"data": "labels.csv", "seed": 3})
    return path


@pytest.mark.parametrize("name", ["tuned.pkl", "tuned.PKL"])
def test_prompts_are_not_saved_under_the_name_of_a_pickle(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError) as raised:
        AgenticIQA().save(tmp_path / name)
    assert str(raised.value) == f"{tmp_path / name}: prompts are saved as JSON, not as a pickle; name the file .json"
    assert not (tmp_path / name).exists()


def parts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    metadata = content.pop("metadata")
    return metadata["agenticiqa"], content


def test_instructions_and_demonstrations_come_back_and_are_asked(saved: Path, tmp_path: Path) -> None:
    program = Program()
    saving.load(program, saved)
    assert program.answer.predict.signature.instructions == "Look twice, naïvely."
    (demo,) = program.answer.predict.demos
    assert demo["query"] == "Sharp?"
    assert program.judge.predict.signature.instructions == DecideReplan.instructions
    assert program.answer.predict.signature.output_fields.keys() == AnswerQuestion.output_fields.keys()
    saving.save(program, tmp_path / "again.json", {})
    assert parts(tmp_path / "again.json")[1] == parts(saved)[1]
    lm, engine = scripted_lm(['{"answer": {"final_answer": "Yes", "quality_reasoning": "Crisp."}}'])
    with dspy.context(lm=lm):
        program.answer({"image": None, "reference": None, "query": "q", "options": "none", "evidence": "none"})
    assert "Look twice" in str(engine.requests[0].system)
    assert "Crisp edges." in str(engine.requests[0].messages)


def test_the_header_describes_the_state(saved: Path) -> None:
    header, state = parts(saved)
    assert header["adapter"] == "SteadyAdapter"
    assert header["created_with"] == {"data": "labels.csv", "seed": 3}
    assert header["created"].endswith("+00:00")
    assert set(header["fingerprints"]) == set(state) == {"answer.predict", "judge.predict"}


@pytest.mark.parametrize("by_dspy", [False, True])
@pytest.mark.parametrize("other", [AnswerQuestion.delete("options"), DecideReplan])
def test_a_predictor_loads_only_prompts_for_its_fields_and_the_others_are_reported(
    saved: Path, other: type[dspy.Signature], by_dspy: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """DSPy itself restores the fields by position, so that their descriptions would be exchanged."""
    if by_dspy:
        tuned().save(saved)
    program = Program(other)
    assert saving.load(program, saved) == ["judge.predict"]
    assert program.answer.predict.signature.instructions == other.instructions
    assert program.answer.predict.demos == []
    assert "ignored: answer.predict: saved for another prompt, or with other fields" in caplog.text
    with pytest.raises(StateError, match="no prompt fits this program"):
        saving.load(CheckedPredict(AnswerQuestion, stage="answering"), saved)


def test_missing_and_further_predictors_are_skipped(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = Program()
    del program.judge
    saving.load(program, saved)
    assert program.answer.predict.signature.instructions == "Look twice, naïvely."
    assert "ignored: judge.predict: this program has no such predictor" in caplog.text
    saving.save(tuned(), saved, {}, ["answer.predict"])
    whole = Program()
    assert saving.load(whole, saved) == ["answer.predict"]
    assert whole.judge.predict.signature.instructions == DecideReplan.instructions


def test_a_file_without_fitting_prompts_is_refused_in_one_line(saved: Path) -> None:
    for other in (CheckedPredict(AnswerQuestion, stage="answering"), dspy.Module()):
        with pytest.raises(StateError, match=r"no prompt fits this program \(answer\.predict, judge") as caught:
            saving.load(other, saved)
        assert "\n" not in str(caught.value)


def test_frozen_predictors_are_not_saved(tmp_path: Path) -> None:
    program = tuned()
    program.judge._compiled = True  # as DSPy marks what its optimizers shall leave alone
    saving.save(program, tmp_path / "frozen.json", {})
    assert set(parts(tmp_path / "frozen.json")[1]) == {"answer.predict"}
    fresh = Program()
    saving.load(fresh, tmp_path / "frozen.json")
    assert fresh.answer.predict.signature.instructions == "Look twice, naïvely."


def test_a_scorer_tuned_under_fast_is_used_wherever_a_model_scores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = {"backend": "vllm.test", "api_base": "http://127.0.0.1:9/v1"}
    all_asked = Config(**dict.fromkeys(STAGES, asked))
    program = AgenticIQA.from_config(all_asked.model_copy(update={"mode": "fast"}))
    scorer, shipped = dict(program.named_predictors())[SCORER], saving.scoring_prompt(program)
    assert not shipped.is_tuned
    scorer.signature = scorer.signature.with_instructions("Weigh the blur.")
    assert saving.scoring_prompt(program).is_tuned
    assert saving.scoring_prompt(program).digest != shipped.digest
    program.save(tmp_path / saving.PROMPTS_FILE)
    blind = {"planner": {**asked, "sees_images": False}, "summarizer": asked}
    for config in (all_asked, Config(**blind), Config(summarizer=asked)):
        loaded = AgenticIQA.from_config(config.model_copy(update={"prompts": str(tmp_path)}))
        assert dict(loaded.named_predictors())[SCORER].signature.instructions == "Weigh the blur."
        assert saving.scoring_prompt(loaded) == saving.scoring_prompt(program)
    assert "planner.ask.predict: saved for another prompt, or with other fields" in caplog.text
    with pytest.raises(StateError, match="this program has no such predictor"):
        AgenticIQA.from_config(Config(prompts=str(tmp_path)))


def test_the_file_is_a_state_that_dspy_itself_loads(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = Program()
    program.load(saved)
    assert program.answer.predict.signature.instructions == "Look twice, naïvely."
    assert not caplog.records


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, r" \(No such file or directory\)"),
        (b"", ""),
        (b"nonsense", ""),
        (b"\xff\xd8\xff\xe0", ""),
        (b"[]", ""),
        (b"3", ""),
        (b"{}", ""),
        (b'{"metadata": {}}', ""),
        (b'{"metadata": []}', ""),
        (b'{"metadata": {"dependency_versions": {"dspy": "3.4.1"}, "agenticiqa": {}}}', ""),
        (b'{"metadata": {"dependency_versions": {"dspy": "3.4.1"}, "agenticiqa": {"fingerprints": 7}}}', ""),
        (b'{"metadata": {"dependency_versions": {"dspy": "3.4.1"}}, "judge.predict": {"signature": 3}}', ""),
        (b'{"metadata": {"dependency_versions": {"dspy": "3.4.1"}, "agenticiqa": {"fingerprints": {}}}, "x": NaN}', ""),
        (b'{"metadata": {}, "judge.predict": "\\ud800"}', r" \(a text is not valid Unicode\)"),
    ],
)
def test_a_file_that_is_no_saved_program_is_refused(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / saving.PROMPTS_FILE
    if content is not None:
        path.write_bytes(content)
    for given in (path, tmp_path):
        with pytest.raises(StateError, match=f"prompts.json: cannot be read as a saved program{why}"):
            saving.load(Program(), given)


def test_a_state_of_another_dspy_or_adapter_is_loaded_with_a_warning(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saving.load(Program(), saved)
    assert not caplog.records
    with dspy.context(adapter=dspy.ChatAdapter()):
        saving.load(Program(), saved)
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["metadata"]["dependency_versions"]["dspy"] = "3.3.0"
    saved.write_text(json.dumps(content), encoding="utf-8")
    saving.load(Program(), saved)
    shown = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert shown == [
        "tuned with adapter SteadyAdapter (now ChatAdapter); the prompts may now be worded differently",
        f"tuned with dspy 3.3.0 (now {dspy.__version__}); the prompts may now be worded differently",
    ]


def test_repeated_loading_does_not_nest_signatures(saved: Path) -> None:
    program = Program()
    for _ in range(200):  # the 140th ended in a RecursionError
        saving.load(program, saved)
    assert program.answer.predict.signature.instructions == "Look twice, naïvely."


def test_a_matching_state_saved_by_dspy_is_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tuned().save(tmp_path / "plain.json")
    program = Program()
    saving.load(program, tmp_path / "plain.json")
    assert program.answer.predict.signature.instructions == "Look twice, naïvely."
    assert len(program.answer.predict.demos) == 1
    (record,) = [record for record in caplog.records if record.name == saving.__name__]
    assert "saved by DSPy" in record.getMessage()


def test_a_program_saved_as_a_whole_has_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-of-the-environment")
    stage = {"backend": "openai.test", "api_base": "http://127.0.0.1:9/v1", "api_key_env": "MY_KEY"}
    program = AgenticIQA.from_config(Config(**dict.fromkeys(STAGES, stage)))
    program.set_lm(dspy.LM("openai/mine", api_key="sk-of-the-caller", headers={"Authorization": "sk-in-a-header"}))
    program.save(tmp_path / "whole", save_program=True)
    assert program.predictors()[0].lm is not None
    for path in (tmp_path / "whole").iterdir():
        assert b"sk-" not in path.read_bytes()
    loaded = dspy.load(str(tmp_path / "whole"), allow_pickle=True)
    assert [lm.engine.wire.key for lm in loaded.planner.ask.backend.lms] == ["sk-of-the-environment"]
    assert loaded.predictors()[0].lm is None
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(BackendError, match="MY_KEY"):
        dspy.load(str(tmp_path / "whole"), allow_pickle=True)


def test_a_custom_backend_is_pickled_without_its_key() -> None:
    lm = dspy.LM("openai/mine", api_key="sk-secret", headers={"Authorization": "sk-secret"}, temperature=0.5)
    pickled = pickle.dumps(Backend((lm,)))
    assert b"sk-secret" not in pickled
    (loaded,) = pickle.loads(pickled).lms
    assert (loaded.model, loaded.kwargs["temperature"]) == ("openai/mine", 0.5)
    assert lm.kwargs["api_key"] == "sk-secret"


@pytest.mark.parametrize("address", ["http://me:secret@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?api-key=secret"])
def test_an_address_with_a_secret_is_not_written(address: str) -> None:
    backend = connect(StageConfig(backend="vllm.test", api_base=address))
    with pytest.raises(BackendError, match="a password or key in api_base") as caught:
        pickle.dumps(backend)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("part", "value"), [("instructions", 3), ("instructions", None), ("fields", [1e308])])
def test_a_prompt_with_a_number_for_a_text_is_refused(saved: Path, part: str, value: object) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    signature = content["judge.predict"]["signature"]
    if part == "fields":
        signature["fields"][0]["description"] = value
    else:
        signature[part] = value
    saved.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StateError, match=r"state\.json: a part of a prompt is .*, expected a text; tune again"):
        saving.load(Program(), saved)


@pytest.mark.parametrize(
    "damage", [{"judge.predict": None}, {"judge.predict": {}}, {"judge.predict": {"signature": 3}}]
)
def test_a_damaged_state_is_refused_and_leaves_the_program_as_it_was(saved: Path, damage: dict[str, Any]) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    saved.write_text(json.dumps(content | damage), encoding="utf-8")
    program = Program()
    with pytest.raises(StateError, match="damaged"):
        saving.load(program, saved)
    assert program.answer.predict.signature.instructions == AnswerQuestion.instructions
    assert program.answer.predict.demos == []


def test_no_key_no_header_and_no_address_is_ever_written(tmp_path: Path) -> None:
    program = tuned()
    program.set_lm(
        dspy.LM(
            "openai/secret-model",
            api_key="sk-secret",
            api_base="http://secret.invalid/v1",
            headers={"Authorization": "Bearer secret"},
            extra_body={"token": "secret"},
        )
    )
    saving.save(program, tmp_path / "state.json", {})
    text = (tmp_path / "state.json").read_text(encoding="utf-8")
    assert "secret" not in text
    assert "http" not in text
    assert program.answer.predict.lm is not None
    lm, _ = scripted_lm(["{}"])
    for mine in (None, lm):  # the program keeps the model that it has
        fresh = Program()
        fresh.set_lm(mine)
        saving.load(fresh, tmp_path / "state.json")
        assert fresh.answer.predict.lm is mine


def test_saving_replaces_the_older_file_whole_and_leaves_no_draft(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(TypeError):
        saving.save(tuned(), saved, {"score": object()})
    assert saved.read_bytes() == before
    saving.save(tuned(), saved.parent / "new" / "er" / "state.json", {})
    assert parts(saved.parent / "new" / "er" / "state.json")[1] == parts(saved)[1], "a folder is made"
    shutil.rmtree(saved.parent / "new")
    saving.save(Program(), saved, {})
    assert parts(saved)[1]["answer.predict"]["demos"] == []
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


# --- a file that somebody sent --------------------------------------------------------------------------------------

START, END = SAVED_START, SAVED_END
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def around(url: str, kind: str = "image_url") -> str:
    return f"{START}{json.dumps([{'type': kind, 'image_url': {'url': url}}])}{END}"


def received(saved: Path, **fields: Any) -> Path:
    """Write the saved file with other fields in its example."""
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["answer.predict"]["demos"][0] |= fields
    saved.write_text(json.dumps(content), encoding="utf-8")
    return saved


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "/etc/hostname"},
        {"image": "../secret.png"},
        {"image": "inside/../../secret.png"},
        {"image": "link.png"},
        {"image": "http://127.0.0.1:9/x.png"},
        {"image": "FILE:///etc/hostname"},
        {"image": "//server/share/x.png"},
        {"image": {"url": "http://127.0.0.1:9/x.png"}},
        {"image": ["/etc/hostname"]},
        {"image": around("http://127.0.0.1:9/x.png")},
        {"image": around("file:///etc/hostname")},
        {"image": around(PIXEL) + around("http://127.0.0.1:9/x.png")},
        {"image": around(PIXEL + END + START + "http://127.0.0.1:9/")},
        {"image": f"{START}[{END}"},
        {"query": f"Sharp? {around('http://127.0.0.1:9/x.png')}"},
        {"query": f"Sharp? {around(PIXEL)}"},
        {"query": f"{START}[", "options": f"]{END}"},
        {"answer": {"final_answer": around("file:///etc/hostname"), "quality_reasoning": "Crisp."}},
    ],
    ids=str,
)
def test_an_example_cannot_reach_other_files_or_addresses(fields: dict[str, Any], saved: Path, tmp_path: Path) -> None:
    (tmp_path.parent / "secret.png").write_bytes(b"secret")
    (tmp_path / "link.png").symlink_to("/etc/hostname")
    program, before = Program(), saving.prompts_of(Program())
    with pytest.raises(StateError, match=r"state\.json: (the image of an example is|DSPy's image marker)"):
        saving.load(program, received(saved, **fields))
    assert saving.prompts_of(program) == before


def test_an_instruction_with_the_marker_is_refused(saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["judge.predict"]["signature"]["instructions"] += around("http://127.0.0.1:9/x.png")
    saved.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StateError, match="image marker"):
        saving.load(Program(), saved)


def test_an_image_that_is_embedded_or_beside_the_file_is_shown(saved: Path, photo: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(photo, tmp_path / "examples" / photo.name)
    for image in (PIXEL, around(PIXEL), None, f"examples/{photo.name}", str(tmp_path / "examples" / photo.name)):
        program = Program()
        saving.load(program, received(saved, image=image))
        (demo,) = program.answer.predict.demos
        beside = image not in (PIXEL, around(PIXEL), None)
        assert demo["image"] == (str(tmp_path / "examples" / photo.name) if beside else image)


def test_saving_embeds_the_images_of_examples(photo: Path, tmp_path: Path) -> None:
    program = tuned()
    program.answer.predict.demos[0]["image"] = str(photo)
    saving.save(program, tmp_path / "state.json", {})
    assert str(photo) not in (tmp_path / "state.json").read_text()
    again = Program()
    saving.load(again, tmp_path / "state.json")
    assert again.answer.predict.demos[0]["image"].startswith(f'{START}[{{"type": "image_url"')
