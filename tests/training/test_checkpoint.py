"""Files are published whole, and nothing but a checkpoint is taken for one."""

import numpy as np
import pytest

from rove.errors import RunFolderError
from rove.parts import files
from rove.training import checkpoint


def test_what_goes_in_comes_out(tmp_path):
    arrays = {
        "scalar": np.array(3.5, np.float32),
        "empty": np.zeros((0, 7), np.float32),
        "flags": np.array([True, False]),
        "counts": np.arange(6, dtype=np.int32).reshape(2, 3).T,
    }
    checkpoint.save_arrays(tmp_path / "a", arrays, {"finished": True})
    found, about = checkpoint.load_arrays(tmp_path / "a")
    assert about == {"finished": True}
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_publish_replaces_and_leaves_nothing_beside(tmp_path):
    files.publish(tmp_path / "f", b"one")
    files.publish(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_write_that_fails_leaves_nothing_beside(tmp_path):
    (tmp_path / "f" / "full").mkdir(parents=True)  # a file cannot take its place
    with pytest.raises(RunFolderError, match="cannot write"):
        files.publish(tmp_path / "f", b"one")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x80\x04\x95pickle", b"\0" * 64])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(RunFolderError, match="not a checkpoint"):
        checkpoint.load_arrays(tmp_path / "f")


def test_a_truncated_file_is_refused(tmp_path):
    checkpoint.save_arrays(tmp_path / "f", {"x": np.zeros(100)}, {})
    whole = (tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(whole[:-10])
    with pytest.raises(RunFolderError, match="not a checkpoint"):
        checkpoint.load_arrays(tmp_path / "f")


def test_other_shapes_are_refused(tmp_path):
    with pytest.raises(RunFolderError, match=r"float32\[4\] instead of float32\[3\]"):
        checkpoint.unflatten(
            {"x": np.zeros(3, np.float32)}, {"['x']": np.zeros(4, np.float32)}, tmp_path
        )
