"""A transcript of a run: what it proves, and that no change of it goes unnoticed."""

import contextlib
import json

import msgspec
import pytest
from cases import each_case
from click.testing import CliRunner
from consortium import SITES, Consortium, rows
from test_over_a_network import ONE, TWO, documents, in_one_process

from securecomp.cli.main import main
from securecomp.errors import AuthenticationError, ParameterError, SecureCompError
from securecomp.net import programs, run_transcript, study_file, transcript_replay
from securecomp.net.totals_chain import AgreedNumbers, OpenedSum
from securecomp.protocol.session import Session


def site_with_transcript(consortium, name, frame=None, run="1", suffix=""):
    """Run a site and write its transcript beside its state."""
    member = consortium.member(name, run)
    try:
        run_transcript.start(member)
        frame = rows(name) if frame is None else frame
        found = list(programs.join(member, name, frame))
        path = consortium.folder / f"{name}{suffix}.transcript"
        run_transcript.finish(member, consortium.path, path)
        return {str(question): result for question, result in found if result is not None}
    finally:
        member.close()


def ran(folder, analyses, *args, **facts):
    """A consortium whose sites all wrote transcripts, and what they heard."""
    consortium = Consortium(folder, analyses, *args, **facts)
    with consortium.relay():
        found = consortium.run(site=lambda *which: site_with_transcript(consortium, *which))
    for each in found.values():
        assert not isinstance(each, BaseException), each
    return consortium, found


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("done"), TWO)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("small"), '[[analyses]]\nask = "count"\n', "masking")[0]


def verified(consortium, name="north"):
    return transcript_replay.verify(consortium.path, consortium.folder / f"{name}.transcript")


def test_a_transcript_gives_the_results_without_rows_and_network(done):
    consortium, heard = done
    for name in SITES:
        found = verified(consortium, name)
        results = {str(question): result for question, result in found.results}
        assert documents(results) == documents(heard[name])
        assert found.unsigned == []
        assert set(found.transcript.ended) == set(SITES)
    assert documents(results) == documents(in_one_process(consortium.path))
    kinds = {type(step) for step in found.transcript.steps}
    assert kinds == {OpenedSum, AgreedNumbers}


def test_all_sites_transcripts_have_one_head(done):
    consortium, _ = done
    found = [verified(consortium, name).transcript for name in SITES]
    assert (
        len({one.head for one in found}) == len({tuple(one.nonces.items()) for one in found}) == 1
    )
    assert found[0].steps == found[1].steps == found[2].steps


def test_the_study_s_signatures_come_with_it_and_another_study_is_refused(done, tmp_path):
    consortium, _ = done
    alone = tmp_path / "study.toml"
    alone.write_bytes(consortium.path.read_bytes())
    path = consortium.folder / "north.transcript"
    assert transcript_replay.verify(alone, path).results
    alone.write_bytes(consortium.path.read_bytes() + b"\n")
    with pytest.raises(ParameterError, match="the transcript of another study file"):
        transcript_replay.verify(alone, path)


def test_a_finished_run_writes_the_same_transcript_again(tmp_path):
    consortium, _ = ran(tmp_path, TWO)
    with consortium.relay():
        site_with_transcript(consortium, "south", suffix=" again")
    again = (tmp_path / "south again.transcript").read_bytes()
    assert again == (tmp_path / "south.transcript").read_bytes()


def test_a_transcript_names_who_was_counted_and_who_did_not_sign(tmp_path):
    """With masking a site leaves after the first sum; the others go on."""
    two = ONE + '[[analyses]]\nask = "sum"\ncolumn = "age"\n'
    sites = ("east", "north", "south", "west")
    consortium = Consortium(tmp_path, two, "masking", sites, "answer_within = 2\n")

    def site(name, frame, run):
        if name != "west":
            return site_with_transcript(consortium, name, frame, run)
        return consortium.leaving(name, run)

    with consortium.relay():
        heard = consortium.run(site=site)
    found = verified(consortium, "south")
    assert documents({str(q): r for q, r in found.results}) == documents(heard["south"])
    assert [counted for _, counted in found.sums] == [sites, sites[:3]]
    assert found.unsigned == ["west"]
    path = tmp_path / "south.transcript"
    fewer = msgspec.structs.replace(
        found.transcript, ended={s: found.transcript.ended[s] for s in ("south",)}
    )
    rewritten(consortium, path, fewer, "south")
    with pytest.raises(AuthenticationError, match="east, north, west did not sign the totals"):
        transcript_replay.verify(consortium.path, path)


def test_a_site_that_hears_no_total_shows_its_part(tmp_path):
    facts = 'receivers = "analysts"\n'
    consortium, heard = ran(tmp_path, ONE, "masking", facts=facts, analysts=("alice",))
    found = verified(consortium)
    assert heard["north"] == {}
    assert [result for _, result in found.results] == [None]
    assert [step.total for step in found.transcript.steps] == [None]


def rewritten(consortium, path, transcript, site):
    """Write a transcript as its own site would forge it: signed anew by this site."""
    signature = consortium.key(site).sign(run_transcript._PURPOSE, *transcript.statement())
    path.write_bytes(msgspec.structs.replace(transcript, signature=signature).encode())


def step_changed(transcript, number, **facts):
    steps = list(transcript.steps)
    steps[number] = msgspec.structs.replace(steps[number], **facts)
    return {"steps": steps}


def with_session(transcript, **facts):
    session = Session.from_bytes(transcript.steps[0].session)
    changed = msgspec.structs.replace(session, **facts).to_bytes()
    return step_changed(transcript, 0, session=changed)


def first_numbers(transcript):
    return next(i for i, s in enumerate(transcript.steps) if isinstance(s, AgreedNumbers))


def off_by_one(transcript):
    total = transcript.steps[0].total
    return step_changed(transcript, 0, total=(total[0] + 1, *total[1:]))


def other_numbers(transcript):
    at = first_numbers(transcript)
    values = transcript.steps[at].values
    return step_changed(transcript, at, values=(values[0] + 1.0, *values[1:]))


@each_case(
    "change, words",
    [
        (lambda t: {"study": "0" * 64}, "another study file"),
        (lambda t: {"site": "east"}, "'east', no site of the study"),
        (lambda t: {"site": "south"}, "south: the signature for 'transcript of a run'"),
        (lambda t: {"run": "2"}, "step 1: the sum is not bound to this run"),
        (lambda t: {"nonces": {**t.nonces, "west": bytes(32)}}, "step 1: the sum is not bound"),
        (lambda t: {"nonces": {"north": bytes(32)}}, "random numbers of the run are not complete"),
        (lambda t: {"head": "0" * 64}, "do not lead to the head"),
        (lambda t: {"steps": t.steps[1:]}, "step 1: the sum is not bound to this run"),
        (lambda t: {"steps": t.steps[:-1]}, "do not lead to the head"),
        (off_by_one, "step 2: the sum is not bound to this run and what it opened|the head"),
        (other_numbers, "the sum is not bound to this run and what it opened"),
        (lambda t: step_changed(t, 0, counted=("north", "south")), "the sum is not bound|the head"),
        (lambda t: step_changed(t, 0, counted=("north", "north", "west")), "or one twice"),
        (lambda t: step_changed(t, 0, counted=("east", "north", "west")), "did not take part"),
        (lambda t: step_changed(t, 0, total=None), "a total is there exactly where north hears"),
        (lambda t: step_changed(t, 0, total=(1,)), "no inputs within the bounds"),
        (lambda t: step_changed(t, 0, session=b"x"), "step 1: not a session of this version"),
        (lambda t: with_session(t, id=bytes(16)), "step 1: the sum is not bound"),
        (lambda t: with_session(t, limit=1 << 50), "the sum is not bound|the head"),
        (lambda t: {"ended": {**t.ended, "west": bytes(64)}}, "west: the signature for 'totals"),
        (lambda t: {"ended": {"north": t.ended["north"]}}, "south, west did not sign the totals"),
        (lambda t: {"ended": {"south": t.ended["south"]}}, "the signatures on the totals"),
        (lambda t: {"agreed": {**t.agreed, "west": bytes(64)}}, "west signed another version"),
        (lambda t: {"agreed": {"north": t.agreed["north"]}}, "on the study file are not complete"),
    ],
)
def test_a_site_that_forges_its_own_transcript_is_refused(done, tmp_path, change, words):
    """Signed anew with its own key, it still lacks the other sites' signatures."""
    consortium, _ = done
    path = tmp_path / "forged"
    transcript = verified(consortium).transcript
    rewritten(consortium, path, msgspec.structs.replace(transcript, **change(transcript)), "north")
    with pytest.raises(SecureCompError, match=words):
        transcript_replay.verify(consortium.path, path)


def test_sites_that_all_sign_another_program_s_sums_are_refused(done, tmp_path):
    """The chain and every signature hold; the study's questions do not open these sums."""
    consortium, _ = done
    transcript = verified(consortium).transcript
    study = study_file.read(consortium.path)
    chain = transcript.chain(study)
    sessions = study.sums()
    session = Session.from_bytes(transcript.steps[0].session)
    made = msgspec.structs.replace(session, id=chain.session_id(16), limit=1 << 50)
    total = transcript.steps[0].total
    chain.record = []
    chain.opened(made, made.contributors, b"".join(t.to_bytes(8, "little") for t in total))
    head = chain.head
    ended = {s: chain.sign(consortium.key(s), transcript.run, 0, head) for s in SITES}
    forged = msgspec.structs.replace(transcript, steps=chain.record, head=head.hex(), ended=ended)
    assert sessions.fewest_counted(made) == 3
    rewritten(consortium, tmp_path / "forged", forged, "north")
    with pytest.raises(AuthenticationError, match="step 1: another sum than the study's program"):
        transcript_replay.verify(consortium.path, tmp_path / "forged")


def flipped(consortium, step):
    """Positions of a transcript at which a flipped bit went unnoticed."""
    path = consortium.folder / "north.transcript"
    data, unnoticed = path.read_bytes(), []
    changed = consortium.folder / "changed"
    for place in range(0, len(data), step):
        bit = 1 << place % 7
        changed.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with contextlib.suppress(AuthenticationError, ParameterError):
            transcript_replay.verify(consortium.path, changed)
            unnoticed.append(place)
    return unnoticed, len(data)


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_flipped_bit_anywhere_is_noticed(small, step):
    unnoticed, size = flipped(small, step)
    assert unnoticed == []
    assert size > 1500


def test_a_transcript_that_is_cut_off_or_longer_is_refused(small, tmp_path):
    data = (small.folder / "north.transcript").read_bytes()
    for changed in (data[:-1], data + b"\n", data[: len(data) // 2], b"", data.replace(b" ", b"")):
        (tmp_path / "changed").write_bytes(changed)
        with pytest.raises((AuthenticationError, ParameterError)):
            transcript_replay.verify(small.path, tmp_path / "changed")


def test_the_command_verifies_and_prints_results(done, tmp_path):
    consortium, heard = done
    path = consortium.folder / "west.transcript"
    result = CliRunner().invoke(main, ["verify", str(consortium.path), str(path)])
    assert result.exit_code == 0, result.output
    assert "run 1, as west saw it; its totals are signed by north, south, west" in result.output
    assert "It holds." in result.output
    asked = CliRunner().invoke(main, ["verify", str(consortium.path), str(path), "--json"])
    facts = json.loads(asked.output)
    results = {one["ask"]: one["result"] for one in facts["results"]}
    assert results == json.loads(json.dumps(documents(heard["west"])))
    assert all(one["counted"] == list(SITES) for one in facts["sums"])
    (tmp_path / "changed").write_bytes(path.read_bytes().replace(b'"north"', b'"nor7h"', 1))
    refused = CliRunner().invoke(main, ["verify", str(consortium.path), str(tmp_path / "changed")])
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: ")


def test_a_transcript_is_never_written_over_a_file(small):
    member = small.member("north")
    try:
        run_transcript.start(member)
        with small.relay():
            found = list(programs.join(member, "north", rows("north")))
            assert found
            with pytest.raises(ParameterError, match=r"north\.transcript: cannot be written"):
                run_transcript.finish(member, small.path, small.folder / "north.transcript")
    finally:
        member.close()
