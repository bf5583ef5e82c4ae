import os
import re
import subprocess
import sys
import threading

import pytest

import halfseen as hs
from halfseen.files import (
    MADE_UP,
    PART,
    is_left_behind,
    read_whole,
    remove_left_behind,
    unfinished_folder,
    whole_file,
    write_text_whole,
)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    target, link = tmp_path / "target.md", tmp_path / "link.md"
    target.write_text("old")
    link.symlink_to(target)
    write_text_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.md", "target.md"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Without a reader at the other end, opening it would wait for one.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text_whole(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_text_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="locks and pipes of POSIX")
# Writes half of a file and of a folder, says so, and waits to be killed.
HALF = """
import sys, time
from pathlib import Path
from halfseen.files import unfinished_folder, whole_file
with unfinished_folder(Path("."), Path("parts")) as made, whole_file("file.txt") as file:
    (made / "part").write_text("half")
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(60)
"""


@posix
def test_what_killed_writers_left_is_removed_by_the_next_and_what_others_have_stays(tmp_path):
    others = [".file.txt.abcdefgh.part", ".halfseen-part", "a.abcdefgh.halfseen-part"]
    for name in others:
        (tmp_path / name).touch()
    process = subprocess.Popen(
        [sys.executable, "-c", HALF], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "half\n"
    left = sorted({*os.listdir(tmp_path)} - {*others})
    assert [re.sub(MADE_UP + re.escape(PART), "", name) for name in left] == [
        ".file.txt.",
        ".parts.",
    ]
    assert all(map(is_left_behind, left))
    # Whoever writes another file there, as long as it is at work, leaves it alone.
    write_text_whole(tmp_path / "other.txt", "whole")
    assert {*left} < {*os.listdir(tmp_path)}
    process.kill()
    process.communicate()
    assert {*left} < {*os.listdir(tmp_path)}
    write_text_whole(tmp_path / "other.txt", "whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "other.txt"])


@posix
def test_links_are_not_followed_when_sweeping(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("precious")
    link = tmp_path / ".x.abcdefgh.halfseen-part"
    link.symlink_to(tmp_path / "kept")
    remove_left_behind(tmp_path)
    assert (tmp_path / "kept" / "file").read_text() == "precious"


def test_threads_leave_each_others_files(tmp_path):
    with whole_file(tmp_path / "a") as file, unfinished_folder(tmp_path, tmp_path / "b") as made:
        file.write(b"one")
        other = threading.Thread(target=write_text_whole, args=(tmp_path / "c", "three"))
        other.start()
        other.join()
        assert made.is_dir()
    assert sorted(os.listdir(tmp_path)) == ["a", "c"]
    assert (tmp_path / "a").read_bytes() == b"one"


@posix
def test_a_pipe_is_read_once_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"12" * 10**6))
    writer.start()
    assert read_whole(pipe) == b"12" * 10**6
    writer.join()


@posix
def test_what_has_no_end_is_not_read(tmp_path):
    with pytest.raises(hs.InputError, match="it is a device, and may have no end"):
        read_whole("/dev/zero")
    pipe, stop = tmp_path / "pipe", threading.Event()
    os.mkfifo(pipe)

    def endless():
        with pipe.open("wb", buffering=0) as file:
            try:
                while not stop.is_set():
                    file.write(bytes(2**16))
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=endless)
    writer.start()
    with pytest.raises(hs.InputError, match="more than 5 MB, too much to be read as a whole"):
        read_whole(pipe, 5 * 10**6)
    stop.set()
    writer.join()


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_files_up_to_the_most_are_read(tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    assert read_whole(path, 1000) == bytes(size)
    if size:
        with pytest.raises(hs.InputError, match="too much"):
            read_whole(path, size - 1)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (".", "cannot be read: Is a directory"),
        ("none", "No such file"),
        ("\0", "no path"),
        (3.5, "path"),
    ],
)
def test_what_is_no_file_has_a_sentence(path, told):
    with pytest.raises(hs.InputError, match=told):
        read_whole(path)
