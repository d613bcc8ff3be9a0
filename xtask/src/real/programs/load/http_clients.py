# Eight clients ask for /, each every 10 ms, for SECONDS at PORT; a ninth for /report, unless there is a third argument.
# Prints how often the eight were answered, and the longest time that one of them waited.
import http.client
import sys
import threading
import time

port, end = int(sys.argv[1]), time.time() + float(sys.argv[2])
answered = [0] * 9
longest = [0.0] * 9


def ask(client, path, nap):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.time() < end:
        begun = time.time()
        connection.request("GET", path)
        connection.getresponse().read()
        answered[client] += 1
        longest[client] = max(longest[client], time.time() - begun)
        time.sleep(nap)


clients = [threading.Thread(target=ask, args=(k, "/", 0.01)) for k in range(8)]
if len(sys.argv) < 4:
    clients.append(threading.Thread(target=ask, args=(8, "/report", 0.2)))
for client in clients:
    client.start()
for client in clients:
    client.join()
print("answered", sum(answered[:8]), "longest", round(max(longest[:8]) * 1000), "ms")
