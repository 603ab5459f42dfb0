"""What the model is made to say: nothing usable, too much, dangerous, or an answer to something else."""

import json
from collections.abc import Callable
from typing import Any

from support.faulty import healthy
from support.faulty.exchange import Act, Exchange, Profile, of_stage, question, said, scoring

ESCAPES = "\x1b[2J\x1b[31mred\x1b]0;owned\x07 \x9b31m \x08\x08 \r over \x00 \u202e"
MEGABYTE = 1_000_000


def _object(change: Callable[[dict[str, Any]], Any]) -> Act:
    """The content with its object changed: the value under the stage's field, in place or what is returned."""

    def content(text: str) -> str:
        whole = json.loads(text)
        (field,) = whole
        result = change(whole[field])
        return json.dumps({field: whole[field] if result is None else result})

    return said(content)


def _every(name: str, **values: Any) -> Act:
    """Each record of a list in the answer with these values."""

    def change(answer: dict[str, Any]) -> None:
        for record in answer[name]:
            record.update(values)

    return _object(change)


def _none(name: str) -> Act:
    return _object(lambda answer: answer.update({name: []}))


def _more(name: str) -> Act:
    """One record more than was asked for."""
    return _object(lambda answer: answer[name].append({**answer[name][0], "region": "the sky"}))


def _of(stage: str) -> Act:
    """The healthy answer to another question about the same image."""

    def act(ex: Exchange) -> None:
        mark = healthy.mark_of(ex.body)
        answers = {
            "assessment": {
                "quality_level": healthy.LEVELS[healthy.level_of(mark) - 1],
                "quality_probs": {str(level): log for level, log in healthy.logs_of(mark).items()},
                "quality_reasoning": f"Seen in {mark}.",
            },
            "detection": {"distortion_set": [{"region": "Global", "distortions": ["Noise"]}]},
            "decision": {"need_replan": False, "replan_reason": ""},
        }
        said(json.dumps({stage: answers[stage]}))(ex)

    return act


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text[:20]}, {"type": "text", "text": text[20:]}]


ROWS = [
    Profile("content-parts", "the content as a list of parts", said(_parts)),
    Profile("content-number", "a number", said(3), scoring),
    Profile("content-true", "true", said(True), scoring),
    Profile("content-object", "the JSON object itself, not its text", said(json.loads), scoring),
    Profile("content-list", "an empty list", said([]), scoring),
    Profile("content-fence", "in a Markdown fence", said(lambda t: f"```json\n{t}\n```"), expect="judged"),
    Profile("content-thoughts", "after thoughts", said(lambda t: f"<think>Hm. {{}}</think>{t}"), expect="judged"),
    Profile("content-words-around", "with words around", said(lambda t: f"Sure! {t} Hope it helps."), expect="judged"),
    Profile("content-bom", "after a byte order mark", said(lambda t: "\ufeff" + t), expect="judged"),
    Profile("content-prose", "prose", said("The picture is quite nice, I would say."), scoring),
    Profile("content-refusal-words", "a refusal in words", said("I'm sorry, but I can't assist with that."), scoring),
    Profile("content-escapes", "terminal escapes and nothing else", said(ESCAPES), scoring),
    Profile("content-escapes-all", "the same, for every question", said(ESCAPES), question),
    Profile("content-10-mb", "10 MB of prose", said("The picture is nice. " * 500_000), scoring),
    Profile(
        "content-10-mb-reason",
        "10 MB of reasons",
        _object(lambda a: a.update(quality_reasoning="x " * 5_000_000)),
        scoring,
    ),
    Profile("content-braces", "a megabyte of braces", said("{" * MEGABYTE), scoring),
    Profile("content-brackets", "a megabyte of brackets", said("[" * MEGABYTE), scoring),
    Profile("content-quotes", "a megabyte of quotes", said('"' * MEGABYTE), scoring),
    Profile("content-backslashes", "a megabyte of backslashes", said("\\" * MEGABYTE), scoring),
    Profile("content-digits", "a megabyte of digits", said("7" * MEGABYTE), scoring),
    Profile("content-2000-braces", "2,000 braces", said("{" * 2000), scoring),
    Profile("content-2000-objects", "2,000 objects in objects", said('{"a": ' * 2000 + "1" + "}" * 2000), scoring),
    Profile("content-20000-objects", "20,000 small objects", said('{"a": 1} ' * 20_000), scoring),
    Profile(
        "content-4301-digits",
        "a number of 4,301 digits",
        said(lambda t: t.replace("-", "-" + "9" * 4301, 1)),
        scoring,
        expect="undetectable",
    ),
    Profile(
        "content-digits-in-probs",
        "a million digits in a number",
        said(lambda t: t.replace("-", "-" + "9" * MEGABYTE, 1)),
        scoring,
        expect="undetectable",
    ),
    Profile(
        "content-surrogate",
        "half a pair of surrogates",
        _object(lambda a: a.update(quality_reasoning="half \ud800")),
        scoring,
    ),
    Profile("content-nul", "a NUL in the reason", _object(lambda a: a.update(quality_reasoning="a\0b")), scoring),
    Profile(
        "content-marker",
        "DSPy's own marker",
        _object(lambda a: a.update(quality_reasoning="<<CUSTOM-TYPE-START-IDENTIFIER>>")),
        scoring,
    ),
    Profile(
        "reason-escapes",
        "terminal escapes in the reason",
        _object(lambda a: a.update(quality_reasoning=ESCAPES)),
        scoring,
    ),
    Profile("reason-empty", "an empty reason", _object(lambda a: a.update(quality_reasoning="")), scoring),
    Profile(
        "explanation-escapes",
        "escapes in explanations",
        _every("distortion_analysis", explanation=ESCAPES),
        of_stage("analysis"),
    ),
    Profile(
        "stage-of-another",
        "an assessment, whatever is asked",
        _of("assessment"),
        of_stage("detection", "analysis", "selection"),
    ),
    Profile("scored-by-detection", "a detection in place of a score", _of("detection"), scoring),
    Profile("scored-by-decision", "a decision in place of a score", _of("decision"), scoring),
    Profile(
        "detected-elsewhere",
        "distortions of another region",
        _every("distortion_set", region="the sky"),
        of_stage("detection"),
    ),
    Profile(
        "detected-unknown",
        "a distortion nobody knows",
        _every("distortion_set", distortions=["Ghosts"]),
        of_stage("detection"),
    ),
    Profile("detected-nothing", "no region", _none("distortion_set"), of_stage("detection")),
    Profile("detected-more", "a region too many", _more("distortion_set"), of_stage("detection")),
    Profile(
        "analyzed-elsewhere",
        "an analysis of another region",
        _every("distortion_analysis", region="the sky"),
        of_stage("analysis"),
    ),
    Profile(
        "analyzed-other",
        "an analysis of another distortion",
        _every("distortion_analysis", type="Brightness change"),
        of_stage("analysis"),
    ),
    Profile("analyzed-nothing", "no analysis", _none("distortion_analysis"), of_stage("analysis")),
    Profile(
        "analyzed-unknown",
        "a severity nobody knows",
        _every("distortion_analysis", severity="awful"),
        of_stage("analysis"),
    ),
    Profile(
        "selected-unknown",
        "a tool that was not offered",
        _every("selected_tools", tool="CRYSTAL-BALL"),
        of_stage("selection"),
    ),
    Profile(
        "selected-elsewhere",
        "a tool for another region",
        _every("selected_tools", region="the sky"),
        of_stage("selection"),
    ),
    Profile(
        "planned-tool",
        "a plan with a tool nobody named",
        _object(lambda a: a.update(required_tool=["CRYSTAL-BALL"])),
        of_stage("plan"),
    ),
    Profile(
        "planned-scope",
        "a plan for a region nobody named",
        _object(lambda a: a.update(query_scope=["the sky"])),
        of_stage("plan"),
    ),
    Profile(
        "planned-nothing",
        "a plan of no steps",
        _object(lambda a: a.update(plan=dict.fromkeys(a["plan"], False))),
        of_stage("plan"),
    ),
    Profile(
        "planned-other",
        "a plan for another kind of question",
        _object(lambda a: a.update(query_type="Other")),
        of_stage("plan"),
    ),
    Profile(
        "planned-reference",
        "a plan with a reference that is not there",
        _object(lambda a: a.update(reference_mode="Full-Reference")),
        of_stage("plan"),
    ),
]
