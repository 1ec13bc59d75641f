//go:build !linux

package sqlstore

import "errors"

func renameExchange(a, b string) error {
	return errors.New("this system cannot swap two folders in one step")
}
