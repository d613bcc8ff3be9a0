# Encodes and decodes JSON in four threads, or with an argument in four processes.
import json
import multiprocessing
import sys
import threading

rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i)]} for i in range(300)]


def encode(rounds):
    for _ in range(rounds):
        json.loads(json.dumps(rows))


if __name__ == "__main__":
    kind = multiprocessing.Process if len(sys.argv) > 2 else threading.Thread
    workers = [kind(target=encode, args=(int(sys.argv[1]),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
