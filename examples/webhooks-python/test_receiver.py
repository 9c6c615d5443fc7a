"""The cases of Standard Webhooks' own libraries. Run them with `python3 -m unittest`."""

import unittest

from receiver import NotAuthentic, decode_secret, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
SIGNED_AT = 1614265330
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
OTHER = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(SIGNED_AT),
    "webhook-signature": SIGNATURE,
}


class VerifyTest(unittest.TestCase):
    def assert_accepted(self, headers=HEADERS, secret=SECRET, now=SIGNED_AT):
        self.assertEqual(verify(decode_secret(secret), headers, BODY, now), {"test": 2432232314})

    def assert_refused(self, headers=HEADERS, body=BODY, now=SIGNED_AT):
        with self.assertRaises(NotAuthentic):
            verify(decode_secret(SECRET), headers, body, now)

    def test_the_published_signature_is_accepted(self):
        self.assert_accepted()

    def test_the_secret_may_lack_its_prefix(self):
        self.assert_accepted(secret=SECRET[len("whsec_") :])

    def test_a_secret_that_is_missing_too_short_or_no_base64_is_refused(self):
        for secret in ["", "whsec_", "None", "whsec_" + "AAAA" * 5, "whsec_*" + "AAAA" * 8]:
            with self.subTest(secret), self.assertRaises(ValueError):
                decode_secret(secret)

    def test_one_of_several_signatures_suffices(self):
        several = f"v1,{OTHER} v2,{OTHER} {SIGNATURE} v1,{OTHER}"
        self.assert_accepted({**HEADERS, "webhook-signature": several})

    def test_a_wrong_or_cut_signature_is_refused(self):
        for signature in [f"v1,{OTHER}", "v1,dawfeoifkpqwoekfpqoekf", SIGNATURE[:8], "v1,", "", "v2" + SIGNATURE[2:], "é"]:
            with self.subTest(signature):
                self.assert_refused({**HEADERS, "webhook-signature": signature})

    def test_a_missing_header_is_refused(self):
        for name in HEADERS:
            with self.subTest(name):
                self.assert_refused({key: value for key, value in HEADERS.items() if key != name})

    def test_a_timestamp_that_is_no_number_or_too_far_from_now_is_refused(self):
        for timestamp in ["hello", "-1", "1e9", "²", ""]:
            with self.subTest(timestamp):
                self.assert_refused({**HEADERS, "webhook-timestamp": timestamp})
        for seconds in [-301, 301]:
            with self.subTest(seconds):
                self.assert_refused(now=SIGNED_AT + seconds)
        for seconds in [-300, 300]:
            self.assert_accepted(now=SIGNED_AT + seconds)

    def test_another_body_or_id_is_refused(self):
        self.assert_refused(body=BODY + b" ")
        self.assert_refused({**HEADERS, "webhook-id": "msg_other"})


if __name__ == "__main__":
    unittest.main()
