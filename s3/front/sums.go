package front

import (
	"io"
	"strings"

	"github.com/versity/versitygw/s3api/middlewares"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

// hashes are the checksums of S3, in the order of sums.
var hashes = [...]utils.HashType{utils.HashTypeCRC32, utils.HashTypeCRC32C, utils.HashTypeCRC64NVME, utils.HashTypeMd5, utils.HashTypeSha1,
	utils.HashTypeSha256, utils.HashTypeSha512, utils.HashTypeXXHASH64, utils.HashTypeXXHASH3, utils.HashTypeXXHASH128}

// sums are a body's checksums in base64, nil where there is none.
type sums [len(hashes)]*string

func (s sums) any() bool { return s != sums{} }

// checked is a body that fails at its end if it has not the checksum that its client named. No bucket keeps checksums: they hold for
// the way here.
type checked struct {
	io.Reader
	kind int // of hashes, -1 without
	sum  func() string
}

// check reads a client's checksum: one of the head, or one that follows the body, which the library verifies.
func check(body io.Reader, given sums) (*checked, error) {
	if trailing, ok := body.(middlewares.ChecksumReader); ok && trailing.Algorithm() != "" {
		for i, h := range hashes {
			if strings.EqualFold(trailing.Algorithm(), string(h)) {
				return &checked{body, i, trailing.Checksum}, nil
			}
		}
		return nil, s3err.GetAPIError(s3err.ErrInvalidChecksumAlgorithm)
	}
	for i, want := range given {
		if want != nil {
			hash, err := utils.NewHashReader(body, *want, hashes[i])
			if err != nil {
				return nil, s3err.GetAPIError(s3err.ErrInvalidChecksumAlgorithm)
			}
			return &checked{hash, i, hash.Sum}, nil
		}
	}
	return &checked{body, -1, nil}, nil
}

// sums returns what was verified, once the body has been read to its end.
func (c *checked) sums() (s sums) {
	if c.kind >= 0 {
		text := c.sum()
		s[c.kind] = &text
	}
	return s
}
