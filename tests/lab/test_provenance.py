"""What is written down of the machine."""

from kmixup.lab._provenance import commit, cpu_model, machine


def test_the_make_of_the_cpu_is_told_with_its_family_and_model(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
        "stepping\t: 1\nflags\t\t: fpu avx2\n\n"
    )
    assert cpu_model(path) == "AMD EPYC, family 25, model 17, stepping 1"


def test_a_machine_that_does_not_tell_its_cpu_has_a_name_for_it(tmp_path):
    assert cpu_model(tmp_path / "missing")
    (tmp_path / "empty").touch()
    assert cpu_model(tmp_path / "empty")


def test_a_record_names_the_cpu():
    assert machine()["cpu"] == cpu_model()


def test_the_commit_of_a_clone_is_read_in_each_form_that_git_writes(tmp_path):
    assert commit(tmp_path) is None
    git, sha = tmp_path / ".git", "0123456789abcdef0123456789abcdef01234567"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert commit(tmp_path) is None  # nothing was committed
    (git / "packed-refs").write_text(f"# pack-refs with: sorted\n{sha} refs/heads/main\n")
    assert commit(tmp_path) == sha
    (git / "refs" / "heads" / "main").write_text(f"{sha[::-1]}\n")
    assert commit(tmp_path) == sha[::-1]
    (git / "HEAD").write_text(f"{sha}\n")
    assert commit(tmp_path) == sha
