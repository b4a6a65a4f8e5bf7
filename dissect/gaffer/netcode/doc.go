// Package netcode opens datagrams that netcode encrypted, with the keys that a user gives.
//
//	keys, err := netcode.NewKeys(&file)      // of a key file: docs/keys.md
//	d := netcode.NewDecryptor(keys)          // of one flow
//	err = d.Request(&request)                // its connect token has the session keys
//	plain, err := d.Open(&datagram, &packet)
//
// Keys are kept inside functions: no verb of fmt and no encoder shows one.
package netcode
