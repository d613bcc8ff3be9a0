"""Four threads write to one log under a lock, and wait for the disk with it."""
import os
import sys
import threading
import time

lock = threading.Lock()
log = open("audit.log", "ab", buffering=0)
synced = 0.0


def append(line):
    global synced
    with lock:
        log.write(line)
        begun = time.perf_counter()
        os.fsync(log.fileno())
        synced += time.perf_counter() - begun


def work(rounds):
    for _ in range(rounds):
        sum(range(2000))
        append(b"x" * 200 + b"\n")


threads = [threading.Thread(target=work, args=(int(sys.argv[1]),)) for _ in range(4)]
begun = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("in fsync, with the lock, for %.0f %% of the time" % (100 * synced / (time.perf_counter() - begun)))
