// An echo server on Go's crypto/tls: server PORT FOLDER MODE
package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"os"
	"path/filepath"
)

func main() {
	port, folder, mode := os.Args[1], os.Args[2], os.Args[3]
	file := func(name string) string { return filepath.Join(folder, name) }
	identity, err := tls.LoadX509KeyPair(file("chain.pem"), file("key.pem"))
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{
		Certificates:           []tls.Certificate{identity},
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: mode != "tickets",
	}
	if mode == "optional" || mode == "required" {
		roots, err := os.ReadFile(file("client-ca.pem"))
		if err != nil {
			log.Fatal(err)
		}
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(roots)
		config.ClientAuth = tls.VerifyClientCertIfGiven
		if mode == "required" {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:"+port, config)
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer connection.Close()
			if _, err := io.Copy(connection, connection); err != nil {
				log.Print(err)
			}
		}()
	}
}
