"""Results on the disk: whole or not at all, and an earlier one stays until then."""

import errno
import os
import stat

import pytest

from securecomp.errors import ParameterError
from securecomp.protocol import storage


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class TestOutput:
    def test_a_new_one(self, out):
        storage.write_output(out, b"new", [])
        assert out.read_bytes() == b"new"
        mask = os.umask(0)
        os.umask(mask)
        assert mode(out) == 0o666 & ~mask
        assert os.listdir(out.parent) == ["out"]

    @pytest.mark.parametrize("bits", [0o600, 0o664])
    def test_another_over_it(self, out, bits):
        out.write_bytes(b"an earlier one")
        out.chmod(bits)
        storage.write_output(out, b"new", [])
        assert (out.read_bytes(), mode(out)) == (b"new", bits)
        assert os.listdir(out.parent) == ["out"]

    @pytest.mark.parametrize("earlier", [b"an earlier one", None])
    @pytest.mark.parametrize("step", ["fsync", "write", "replace"])
    def test_a_full_disk(self, out, earlier, step, monkeypatch):
        if earlier:
            out.write_bytes(earlier)

        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        place = {"fsync": (storage.os, "fsync"), "write": (storage.os, "fdopen")}
        monkeypatch.setattr(*place.get(step, (storage.Path, "replace")), full)
        with pytest.raises(ParameterError, match="out: cannot be written: No space left"):
            storage.write_output(out, b"new", [])
        assert [p.read_bytes() for p in out.parent.iterdir()] == ([earlier] if earlier else [])

    def test_through_a_link(self, tmp_path, out):
        folder = tmp_path / "folder"
        folder.mkdir()
        out.symlink_to(folder / "real")
        for text in (b"one", b"two"):
            storage.write_output(out, text, [])
            assert out.is_symlink()
            assert (folder / "real").read_bytes() == text
        assert os.listdir(folder) == ["real"]

    def test_a_pipe_is_written_to(self, out):
        os.mkfifo(out)
        reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
        try:
            storage.write_output(out, b"new", [])
            assert os.read(reader, 9) == b"new"
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(os.stat(out).st_mode)

    def test_what_may_not_be_written(self, out, monkeypatch):
        out.write_bytes(b"kept")
        real = os.access
        monkeypatch.setattr(storage.os, "access", lambda p, m: p != out and real(p, m))
        with pytest.raises(ParameterError, match="out: cannot be written: Permission denied"):
            storage.check_output(out, [])
