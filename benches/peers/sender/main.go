// Sends prepared requests and does nothing else: the least that it can take to put the same objects on an API server.
//
// REQUESTS has one request a line: {"path": …, "body": …}, each a server-side apply that succeeds only if nothing is
// there. They go out in their order, eight at once, over one HTTP/2 connection.
//
//	sender SERVER TOKEN CERTIFICATE REQUESTS
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

const atOnce = 8

type request struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

func main() {
	if len(os.Args) != 5 {
		fail(fmt.Errorf("usage: sender SERVER TOKEN CERTIFICATE REQUESTS"))
	}
	server, token := os.Args[1], os.Args[2]
	client, err := newClient(os.Args[3])
	if err != nil {
		fail(err)
	}
	file, err := os.Open(os.Args[4])
	if err != nil {
		fail(err)
	}
	requests := make(chan request, atOnce)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for request := range requests {
				if err := send(client, server, token, request); err != nil {
					fail(err)
				}
			}
		})
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var next request
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			fail(err)
		}
		requests <- next
	}
	close(requests)
	group.Wait()
	if err := lines.Err(); err != nil {
		fail(err)
	}
}

func newClient(certificate string) (*http.Client, error) {
	text, err := os.ReadFile(certificate)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", certificate)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, MaxConnsPerHost: 1}
	return &http.Client{Transport: transport}, nil
}

func send(client *http.Client, server, token string, request request) error {
	address := server + request.Path + "?fieldManager=gatewright&force=true&fieldValidation=Strict"
	patch, err := http.NewRequest(http.MethodPatch, address, bytes.NewReader(request.Body))
	if err != nil {
		return err
	}
	patch.Header.Set("Authorization", "Bearer "+token)
	patch.Header.Set("Content-Type", "application/apply-patch+yaml")
	patch.Header.Set("Accept", "application/json")
	answer, err := client.Do(patch)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s: %s", request.Path, answer.Status, body)
	}
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "sender:", err)
	os.Exit(1)
}
