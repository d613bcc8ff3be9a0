# A shop with OpenTelemetry's SDK: each item needs the lock with which another request recounts for 40 ms. Prints the longest wait for
# it, in seconds, by the server's own clock.
import http.client, json, os, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class File(SpanExporter):
    def __init__(self):
        self.out = open("otel.jsonl", "w")

    def export(self, spans):
        self.out.write(json.dumps(MessageToDict(encode_spans(spans))) + "\n")
        self.out.flush()
        return SpanExportResult.SUCCESS


provider = TracerProvider(resource=Resource({"service.name": "shop", "process.pid": os.getpid()}))
provider.add_span_processor(BatchSpanProcessor(File()))
tracer = provider.get_tracer("shop")
lock, stock, waits = threading.Lock(), {}, [0]


def recount():
    with lock:
        t = time.perf_counter()
        while time.perf_counter() - t < 0.04:
            sum(range(500))


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with tracer.start_as_current_span("GET", attributes={"http.route": self.path}):
            if self.path == "/recount":
                recount()
            else:
                t = time.perf_counter()
                with lock:
                    stock[self.path] = stock.get(self.path, 0) + 1
                waits.append(time.perf_counter() - t)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
threading.Thread(target=server.serve_forever, daemon=True).start()


def client(count, path, pause):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    for _ in range(count):
        connection.request("GET", path)
        connection.getresponse().read()
        time.sleep(pause)


loads = [(400, "/item", 0.005)] * 4 + [(16, "/recount", 0.15)]
clients = [threading.Thread(target=client, args=load) for load in loads]
for thread in clients:
    thread.start()
for thread in clients:
    thread.join()
provider.shutdown()
print(max(waits))
