package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

var (
	errSecret    = errors.New("the webhook secret is missing or too short")
	errHeaders   = errors.New("the id or the timestamp is missing")
	errTimestamp = errors.New("the timestamp is too far from now")
	errSignature = errors.New("no signature matches")
)

// decodeSecret returns the key that a secret stands for. It refuses a short one: anyone can sign with an empty key.
func decodeSecret(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err == nil && len(key) < 16 {
		err = errSecret
	}
	return key, err
}

// verify returns an error unless the request is a recent delivery that was signed with this key. The body is the
// bytes as received: JSON that was parsed and written again has other bytes, so its signature does not match.
func verify(key []byte, header http.Header, body []byte, now time.Time) error {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return errHeaders
	}
	// Otherwise an attacker who has recorded a delivery could send it again later.
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errTimestamp
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	// After a rotation of the secret there are several signatures, separated by spaces.
	for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
		// hmac.Equal takes the same time wherever the texts differ, so an attacker cannot guess byte by byte.
		if hmac.Equal([]byte(signature), expected) {
			return nil
		}
	}
	return errSignature
}
