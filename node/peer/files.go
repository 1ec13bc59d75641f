package peer

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/pki"
)

const (
	rootFile    = "ca.pem"   // the fleet's root, 0600
	leafFile    = "node.pem" // the leaf, then its key: one file, so that no crash parts them
	pendingFile = "join.pem" // the key and the request of a join that has no answer yet
	removedFile = "removed"  // how this member knows that it is one no more; there only then

	maxFile = 64 << 10
)

// writer replaces a file as a whole, as disk.WriteFile does: after a crash there is the old one or the new one.
type writer func(path string, data []byte, perm fs.FileMode) error

// Joined reports whether dir holds a member's certificate.
func Joined(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, leafFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, fault.Wrap(fault.Unavailable, "peer.Joined", err)
}

// Found keeps the certificate of a fleet's first member, whose leaf was not asked for over the network. node is its ID; key
// and leaf are of pki.NewRequest and Sign. What does not belong together is a Conflict. An earlier certificate is replaced.
func Found(dir, node string, rootPEM, leafPEM, keyPEM []byte) error {
	root, err := pki.ParseCertificate(rootPEM)
	if err != nil {
		return err
	}
	return keep(disk.WriteFile, dir, node, root, leafPEM, keyPEM)
}

// keep checks and writes a member's files; the leaf comes last and makes the node a member.
func keep(write writer, dir, node string, root *x509.Certificate, leafPEM, keyPEM []byte) error {
	if _, err := pair(root, node, leafPEM, keyPEM); err != nil {
		return err
	}
	if err := disk.Prepare(dir); err != nil {
		return err
	}
	rootPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})
	if err := write(filepath.Join(dir, rootFile), rootPEM, 0o600); err != nil {
		return err
	}
	return write(filepath.Join(dir, leafFile), append(append([]byte(nil), leafPEM...), keyPEM...), 0o600)
}

// load reads what keep wrote.
func load(dir, node string) (*x509.Certificate, *tls.Certificate, error) {
	leafPath, rootPath := filepath.Join(dir, leafFile), filepath.Join(dir, rootFile)
	both, err := readFile(leafPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.Newf(fault.NotFound, "peer.Open", "%s is not there: this node is no member of a fleet yet", leafPath)
	}
	if err != nil {
		return nil, nil, fault.Wrap(fault.Unavailable, "peer.Open", err)
	}
	rootPEM, err := readFile(rootPath)
	if err != nil {
		return nil, nil, fault.Newf(fault.Conflict, "peer.Open", "%s cannot be read, but %s can: put it back", rootPath, leafPath)
	}
	root, err := pki.ParseCertificate(rootPEM)
	if err != nil {
		return nil, nil, fault.Newf(fault.Conflict, "peer.Open", "%s: %s", rootPath, fault.Detail(err))
	}
	leafPEM, keyPEM := split(both)
	cert, err := pair(root, node, leafPEM, keyPEM)
	if err != nil {
		return nil, nil, fault.Newf(fault.Conflict, "peer.Open", "%s: %s", leafPath, fault.Detail(err))
	}
	return root, cert, nil
}

// tidy removes what a crash may have left in a member's directory: keys that came to nothing, and those of a join that has ended.
func tidy(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	errs := []error{err}
	for _, name := range append(left, filepath.Join(dir, pendingFile)) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// split parts the first PEM block from the rest.
func split(both []byte) (first, rest []byte) {
	b, rest := pem.Decode(both)
	if b == nil {
		return nil, nil
	}
	return pem.EncodeToMemory(b), rest
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// pair returns the certificate that the node shows: its leaf and the root, by which one who only has an invite knows the
// fleet. The dates are not looked at.
func pair(root *x509.Certificate, node string, leafPEM, keyPEM []byte) (*tls.Certificate, error) {
	conflict := func(why string) error { return fault.New(fault.Conflict, "peer.pair", why) }
	leaf, err := pki.ParseCertificate(leafPEM)
	if err != nil {
		return nil, err
	}
	key, err := pki.ParseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	switch name, err := pki.NodeOf(leaf); {
	case err != nil:
		return nil, conflict(fault.Detail(err))
	case name != node:
		return nil, conflict("the certificate is that of " + name + ", this node is " + node)
	case leaf.CheckSignatureFrom(root) != nil:
		return nil, conflict("the certificate was not signed by the fleet's CA")
	case !key.PublicKey.Equal(leaf.PublicKey):
		return nil, conflict("the certificate and its key do not belong together")
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, root.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// pending returns the key and the request of a join under way, made on the first call. They are kept, so that a join whose
// answer was lost can be asked for again as the same one.
func pending(write writer, dir, node string) (keyPEM, csr []byte, err error) {
	name := filepath.Join(dir, pendingFile)
	both, err := readFile(name)
	if err == nil {
		// The request comes first: its end tells where the key begins.
		csr, keyPEM = split(both)
		if _, err := pki.ParseKey(keyPEM); err == nil && len(csr) > 0 {
			return keyPEM, csr, nil
		}
		return nil, nil, fault.Newf(fault.Conflict, "peer.Join", "%s is damaged: remove it and join with a fresh invite", name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.Wrap(fault.Unavailable, "peer.Join", err)
	}
	if keyPEM, csr, err = pki.NewRequest(node); err != nil {
		return nil, nil, err
	}
	return keyPEM, csr, write(name, append(append([]byte(nil), csr...), keyPEM...), 0o600)
}
