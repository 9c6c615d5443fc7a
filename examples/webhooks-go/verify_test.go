package main

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// The cases of Standard Webhooks' own libraries. Run them with `go test`.
const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body      = `{"test": 2432232314}`
	signedAt  = 1614265330
	signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	other     = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

func TestVerify(t *testing.T) {
	cases := []struct {
		name       string
		header     string
		value      string
		secret     string
		body       string
		after      time.Duration
		isAccepted bool
	}{
		{name: "the published signature is accepted", isAccepted: true},
		{name: "the secret may lack its prefix", secret: secret[len("whsec_"):], isAccepted: true},
		{name: "one of several signatures suffices", header: "webhook-signature", isAccepted: true,
			value: "v1," + other + " v2," + other + " " + signature + " v1," + other},
		{name: "a wrong signature is refused", header: "webhook-signature", value: "v1," + other},
		{name: "a malformed signature is refused", header: "webhook-signature", value: "v1,dawfeoifkpqwoekfpqoekf"},
		{name: "a cut signature is refused", header: "webhook-signature", value: signature[:8]},
		{name: "an empty signature is refused", header: "webhook-signature", value: "v1,"},
		{name: "a signature of another version is refused", header: "webhook-signature", value: "v2" + signature[2:]},
		{name: "a missing signature is refused", header: "webhook-signature"},
		{name: "a missing id is refused", header: "webhook-id"},
		{name: "another id is refused", header: "webhook-id", value: "msg_other"},
		{name: "a missing timestamp is refused", header: "webhook-timestamp"},
		{name: "a timestamp that is no number is refused", header: "webhook-timestamp", value: "hello"},
		{name: "a request of five minutes ago is accepted", after: 5 * time.Minute, isAccepted: true},
		{name: "an older request is refused", after: 5*time.Minute + time.Second},
		{name: "a request from five minutes ahead is accepted", after: -5 * time.Minute, isAccepted: true},
		{name: "a request from later is refused", after: -5*time.Minute - time.Second},
		{name: "another body is refused", body: body + " "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
			header.Set("webhook-timestamp", strconv.Itoa(signedAt))
			header.Set("webhook-signature", signature)
			if c.header != "" {
				header.Set(c.header, c.value)
			}
			if c.secret == "" {
				c.secret = secret
			}
			if c.body == "" {
				c.body = body
			}
			key, err := decodeSecret(c.secret)
			if err != nil {
				t.Fatal(err)
			}
			err = verify(key, header, []byte(c.body), time.Unix(signedAt, 0).Add(c.after))
			if (err == nil) != c.isAccepted {
				t.Errorf("verify returned %v", err)
			}
		})
	}
}

func TestDecodeSecret(t *testing.T) {
	for _, weak := range []string{"", "whsec_", "whsec_*", "None", "whsec_AAAAAAAAAAAAAAAAAAAA"} {
		if _, err := decodeSecret(weak); err == nil {
			t.Errorf("the secret %q is accepted", weak)
		}
	}
}
