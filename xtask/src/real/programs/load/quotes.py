"""An application for gunicorn that asks somebody else, who takes 10 ms, for each answer."""
import time


def fetch_quote():
    time.sleep(0.01)
    return b"a quote\n"


def app(environ, start_response):
    body = fetch_quote()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
