"""What Perfetto's trace_processor reads in a trace."""

import atexit
import json
import pathlib
import subprocess

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"


class Oracle:
    """trace_processor, which loads one trace after another. It ends with this process."""

    def __init__(self):
        command = ["node", TESTS / "oracle/oracle.mjs", TESTS / ".tools/trace-processor"]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, text=True)
        assert json.loads(self.process.stdout.readline())["ready"]
        self.loaded = None
        atexit.register(self.close)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, trace, question):
        if self.loaded is not trace:
            self.loaded = trace
            assert self._answer({"load": str(trace.path)}).get("ready"), trace.path
        answer = self._answer(question)
        assert "error" not in answer, answer
        return answer["rows"]

    def _answer(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


oracle = None


class Trace:
    """A trace that trace_processor has loaded, and finds nothing wrong with; `unfinished` says
    that slices may be open at its end."""

    def __init__(self, path, unfinished=False):
        global oracle
        oracle = oracle or Oracle()
        self.path = path
        wrong = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        assert self.rows(wrong) == []
        assert unfinished or self.rows("SELECT name FROM slice WHERE dur = -1") == []

    def rows(self, sql):
        """The rows of a query, as lists."""
        return oracle.ask(self, sql)

    def column(self, sql):
        return [row[0] for row in self.rows(sql)]

    def args(self, name):
        """The arguments of the slice with this name, as texts."""
        sql = f"""SELECT replace(key, 'debug.', ''), display_value FROM args
            WHERE arg_set_id = (SELECT arg_set_id FROM slice WHERE name = '{name}')
              AND key LIKE 'debug.%'"""
        return dict(self.rows(sql))

    def parent(self, name):
        """The names of the slices around it, from the inside."""
        sql = f"""SELECT around.name FROM slice JOIN slice around ON around.id = slice.parent_id
            WHERE slice.name = '{name}'"""
        return self.column(sql)
