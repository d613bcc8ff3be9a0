"""Eight threads ask a pool of one thread for keys, which are computed in C without the interpreter's lock."""
import hashlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

queued = []


def derive(asked):
    queued.append(time.monotonic() - asked)
    return hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 4000)


def ask(pool, times):
    for _ in range(times):
        pool.submit(derive, time.monotonic()).result()


with ThreadPoolExecutor(max_workers=1) as pool:
    threads = [threading.Thread(target=ask, args=(pool, int(sys.argv[1]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
queued.sort()
print(f"{len(queued)} tasks, half of them queued for {queued[len(queued) // 2] * 1000:.1f} ms and more")
