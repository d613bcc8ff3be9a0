"""One thread searches with a regular expression that backtracks; three others have short answers to give."""
import re
import sys
import threading
import time

late = []
over = threading.Event()
PATTERN = re.compile(r"(a|aa)+$")


def find_all(times):
    for _ in range(times):
        PATTERN.match("a" * 30 + "b")
    over.set()


def answer():
    while not over.is_set():
        due = time.monotonic() + 0.002
        time.sleep(0.002)
        sum(range(200))
        late.append(time.monotonic() - due)


threads = [threading.Thread(target=answer) for _ in range(3)]
threads.append(threading.Thread(target=find_all, args=(int(sys.argv[1]),)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
late.sort()
print(f"{len(late)} answers, half of them late by {late[len(late) // 2] * 1000:.0f} ms and more")
