"""What is written down of the machine."""

from kmixup.lab.train.record import cpu_model, machine


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
