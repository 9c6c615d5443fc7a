"""Receives the webhooks of the payment service with Python's standard library only.

    PAY_WEBHOOK_SECRET=whsec_… PAY_API_KEY=svc_… python3 receiver.py

The key only says whether the orders are live ones or those of test mode.
"""

import base64
import hashlib
import hmac
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 5 * 60


class NotAuthentic(Exception):
    """The request is not a recent delivery that was signed with this secret."""


def decode_secret(secret):
    """Returns the key that a secret stands for. Raises ValueError: anyone can sign with an empty key."""
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    if len(key) < 16:
        raise ValueError("the webhook secret is missing or too short")
    return key


def verify(key, headers, body, now):
    """Returns the event of a delivery. `body` is the bytes as received: JSON that was parsed and written again has
    other bytes, so its signature does not match. `now` is in seconds since 1970. Raises NotAuthentic."""
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not event_id or not timestamp.isdecimal() or len(timestamp) > 12:
        raise NotAuthentic("the id or the timestamp is missing")
    # Otherwise an attacker who has recorded a delivery could send it again later.
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        raise NotAuthentic("the timestamp is too far from now")
    signed = event_id.encode() + b"." + timestamp.encode() + b"." + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # After a rotation of the secret there are several signatures, separated by spaces.
    for signature in headers.get("webhook-signature", "").split(" "):
        # compare_digest takes the same time wherever the texts differ, so an attacker cannot guess byte by byte.
        if hmac.compare_digest(signature.encode(), expected.encode()):
            return json.loads(body)
    raise NotAuthentic("no signature matches")


# A shop keeps both in its database: the event ids in a column with a unique index, in the same transaction as the order.
processed_ids = set()
paid_payments = set()
lock = threading.Lock()


def process(event, is_live):
    """Does what an event asks for, once: the same event may arrive again, with the same id. What is paid is the payment. A
    shop ships the order with which it has stored this payment's id: any other payment may carry the same reference."""
    with lock:
        if event["id"] in processed_ids:
            return
        processed_ids.add(event["id"])
        data = event["data"]
        if event["type"] != "payment.succeeded" or data["live"] != is_live or data["payment_id"] in paid_payments:
            return
        paid_payments.add(data["payment_id"])
        print(f"payment {data['payment_id']} of order {data.get('reference_id') or '(none)'} is paid", flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 15  # seconds without a byte, after which a connection is closed

    def do_POST(self):
        if self.path != "/hooks":
            return self.respond(404)
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or len(length) > 6:
            return self.respond(413)  # a delivery has a few kilobytes
        try:
            event = verify(KEY, self.headers, self.rfile.read(int(length)), time.time())
        except NotAuthentic as error:
            print(f"refused a request: {error}", flush=True)
            return self.respond(400)
        process(event, IS_LIVE)
        self.respond(204)

    def respond(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Logs nothing for each request."""


if __name__ == "__main__":
    KEY = decode_secret(os.environ["PAY_WEBHOOK_SECRET"])
    IS_LIVE = not os.environ["PAY_API_KEY"].startswith("svc_test_")
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3003"))), Receiver)
    print(f"receiving webhooks at http://127.0.0.1:{server.server_port}/hooks", flush=True)
    server.serve_forever()
