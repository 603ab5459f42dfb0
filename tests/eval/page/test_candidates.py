"""GEPA's page of candidates is replaced by one that loads nothing, with every text escaped."""

from pathlib import Path
from types import SimpleNamespace

from gepa.visualization import candidate_tree_html_from_data

from agenticiqa.eval.optimize.candidate_tree import FILE, CandidateTree
from support.html_tags import from_elsewhere, read

HOSTILE = "</pre><script>alert(1)</script>"
CANDIDATES = [{"score": "Rate it.", "plan": "Plan."}, {"score": HOSTILE, "plan": "Plan."}]


def test_the_page_that_loads_from_a_network_is_replaced(tmp_path: Path) -> None:
    scores = [0.5, 0.75]
    theirs = candidate_tree_html_from_data(CANDIDATES, [[None], [0]], scores, {"a": {1}})
    assert "https://" in theirs, "else our own is needless"
    (tmp_path / FILE).write_text(theirs)
    state = SimpleNamespace(
        program_candidates=CANDIDATES,
        parent_program_for_candidate=[[None], [0]],
        program_full_scores_val_set=scores,
    )
    CandidateTree(tmp_path).on_iteration_end({"state": state})
    page = (tmp_path / FILE).read_text()
    assert "https:" not in page
    assert from_elsewhere(page) == []
    assert "script" not in read(page).tags
    assert "1: 0.7500 (best)" in page
    assert page.count("<details open>") == 1, "the text that changed"


def test_without_a_page_of_gepa_none_is_written(tmp_path: Path) -> None:
    CandidateTree(tmp_path).on_iteration_end({"state": None})
    assert not (tmp_path / FILE).exists()
