// Receives the webhooks of the payment service with Go's standard library only.
//
//	PAY_WEBHOOK_SECRET=whsec_… PAY_API_KEY=svc_… go run .
//
// The key only says whether the orders are live ones or those of test mode.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const largestBody = 1_000_000 // bytes

type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		PaymentID   string  `json:"payment_id"`
		ReferenceID *string `json:"reference_id"`
		Live        bool    `json:"live"`
	} `json:"data"`
}

// A shop keeps both in its database: the event ids in a column with a unique index, in the same transaction as the order.
type shop struct {
	sync.Mutex
	isLive       bool
	processedIDs map[string]bool
	paidPayments map[string]bool
}

// process does what an event asks for, once: the same event may arrive again, with the same id. What is paid is the payment. A
// shop ships the order with which it has stored this payment's id: any other payment may carry the same reference.
func (s *shop) process(e event) {
	s.Lock()
	defer s.Unlock()
	if s.processedIDs[e.ID] {
		return
	}
	s.processedIDs[e.ID] = true
	if e.Type != "payment.succeeded" || e.Data.Live != s.isLive || s.paidPayments[e.Data.PaymentID] {
		return
	}
	s.paidPayments[e.Data.PaymentID] = true
	order := "(none)"
	if e.Data.ReferenceID != nil {
		order = *e.Data.ReferenceID
	}
	fmt.Printf("payment %s of order %s is paid\n", e.Data.PaymentID, order)
}

func receive(s *shop, key []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		var e event
		if err = verify(key, r.Header, body, time.Now()); err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			fmt.Println("refused a request:", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.process(e)
		w.WriteHeader(http.StatusNoContent)
	}
}

func main() {
	key, err := decodeSecret(os.Getenv("PAY_WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal("PAY_WEBHOOK_SECRET: ", err)
	}
	apiKey, port := os.Getenv("PAY_API_KEY"), os.Getenv("PORT")
	if apiKey == "" {
		log.Fatal("set PAY_API_KEY")
	}
	if port == "" {
		port = "3004"
	}
	isLive := !strings.HasPrefix(apiKey, "svc_test_")
	mux := http.NewServeMux()
	mux.HandleFunc("/hooks", receive(&shop{isLive: isLive, processedIDs: map[string]bool{}, paidPayments: map[string]bool{}}, key))
	server := http.Server{Addr: "127.0.0.1:" + port, Handler: mux, ReadTimeout: 15 * time.Second}
	fmt.Printf("receiving webhooks at http://%s/hooks\n", server.Addr)
	log.Fatal(server.ListenAndServe())
}
