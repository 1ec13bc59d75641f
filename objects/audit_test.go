package objects

import (
	"fmt"
	"time"
)

// audit holds everything on disk against itself: every file that metadata names has its record and is there, no two things name
// one file, small bodies are there and nothing else is, and usage is what one counts. It returns the first fault.
func audit(s *Store) error {
	named := map[id]string{} // by whom
	name := func(by string, ids []id) error {
		for _, i := range ids {
			if other := named[i]; other != "" {
				return fmt.Errorf("%s and %s both name file %s", other, by, i)
			}
			named[i] = by
		}
		return nil
	}
	for _, k := range s.all() {
		if err := auditBucket(k, name); err != nil {
			return err
		}
	}
	err := s.scan([]byte{garbageClass}, []byte{garbageClass + 1}, func(k, v []byte) error {
		ids, err := readGarbage(v)
		if err != nil {
			return err
		}
		return name(fmt.Sprintf("garbage %x", k), ids)
	})
	if err != nil {
		return err
	}
	if len(s.dying) == 0 {
		err = s.scan([]byte{blobClass}, []byte{blobClass + 1}, func(k, _ []byte) error {
			if named[id(k[1:])] == "" {
				return fmt.Errorf("nothing names file %x, and it has a record", k[1:])
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	there := map[id]bool{}
	if err := s.files.list(func(i id, _ time.Time) error { there[i] = true; return nil }); err != nil {
		return err
	}
	for i, by := range named {
		if v, err := s.get(blobKey(i)); err != nil || v == nil {
			return fmt.Errorf("%s names file %s, which has no record: %w", by, i, err)
		}
		if !there[i] && by[0] != 'g' {
			return fmt.Errorf("%s names file %s, which is missing", by, i)
		}
	}
	return nil
}

// auditBucket counts one bucket.
func auditBucket(k *bucket, name func(string, []id) error) error {
	s := k.s
	var got usage
	inline := map[id]bool{}
	err := s.scan(bucketKey(headClass, k.num), bucketEnd(headClass, k.num), func(key, v []byte) error {
		h, err := readHead(v)
		if err != nil {
			return err
		}
		got.objects++
		got.bytes += h.weight(string(key[bucketKeyLen:]))
		if h.kind == inlineBody {
			inline[h.gen] = true
		}
		return name(fmt.Sprintf("object %q", key[bucketKeyLen:]), h.blobs)
	})
	if err != nil {
		return err
	}
	err = s.scan(bucketKey(inlineClass, k.num), bucketEnd(inlineClass, k.num), func(key, _ []byte) error {
		if i := id(key[bucketKeyLen:]); !inline[i] {
			return fmt.Errorf("small body %s is nobody's", i)
		}
		delete(inline, id(key[bucketKeyLen:]))
		return nil
	})
	if err != nil || len(inline) > 0 {
		return fmt.Errorf("%d small bodies are missing: %w", len(inline), err)
	}
	open := map[id]bool{}
	err = s.scan(bucketKey(uploadClass, k.num), bucketEnd(uploadClass, k.num), func(key, v []byte) error {
		u, err := readUpload(v)
		if err != nil {
			return err
		}
		got.uploads++
		got.bytes += u.weight()
		open[id(key[bucketKeyLen:])] = true
		return nil
	})
	if err != nil {
		return err
	}
	err = s.scan(bucketKey(partClass, k.num), bucketEnd(partClass, k.num), func(key, v []byte) error {
		p, err := readPart(v)
		if err != nil {
			return err
		}
		got.bytes += p.weight()
		if !open[id(key[bucketKeyLen:len(key)-2])] {
			return fmt.Errorf("part %x is of no upload", key)
		}
		return name(fmt.Sprintf("part %x", key), []id{p.blob})
	})
	if err == nil && got != k.usage {
		err = fmt.Errorf("usage of bucket %s is %+v, counted are %+v", k.uid, k.usage, got)
	}
	return err
}

// noOrphans fails if there is a file without a record.
func noOrphans(s *Store) error {
	return s.files.list(func(i id, _ time.Time) error {
		if v, err := s.get(blobKey(i)); err != nil || v == nil {
			return fmt.Errorf("file %s is nobody's and stays: %w", i, err)
		}
		return nil
	})
}
