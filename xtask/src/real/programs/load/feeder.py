"""Three readers fill a queue of four rows; one loader takes them out, and parses."""
import json
import queue
import sys
import threading
import time

rows = queue.Queue(maxsize=4)
data = [{"id": i, "name": "row %d" % i} for i in range(300)]
waited = 0.0


def read_rows(count):
    global waited
    for _ in range(count):
        row = json.dumps(data[:20])
        begun = time.perf_counter()
        rows.put(row)
        waited += time.perf_counter() - begun


def load_rows():
    while rows.get() is not None:
        for _ in range(6):
            json.loads(json.dumps(data))


readers = [threading.Thread(target=read_rows, args=(int(sys.argv[1]),)) for _ in range(3)]
loader = threading.Thread(target=load_rows)
for thread in [loader, *readers]:
    thread.start()
for reader in readers:
    reader.join()
rows.put(None)
loader.join()
print("readers waited %.2f s in put" % waited)
