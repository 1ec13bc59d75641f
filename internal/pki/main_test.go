package pki

import (
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
