package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"
)

// envPrefix starts the environment variable of every flag: --data-dir is EDGED_DATA_DIR.
const envPrefix = "EDGED_"

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func keyName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// applyConfig fills the flags that the command line left alone: from the environment, else from the TOML file at path
// ("" means none). It returns every fault found, each naming its source.
func applyConfig(flags *pflag.FlagSet, path string, lookup func(string) (string, bool)) error {
	fromFile, errs := readConfig(flags, path)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "config" || f.Name == "help" {
			return
		}
		value, source := "", ""
		if v, ok := lookup(envName(f.Name)); ok {
			value, source = v, envName(f.Name)
		} else if v, ok := fromFile[f.Name]; ok {
			value, source = v, path+": "+keyName(f.Name)
		} else {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, unwrapFlag(err)))
		}
	})
	return errors.Join(errs...)
}

// unwrapFlag drops pflag's own "invalid argument … for …" frame: the source is told instead.
func unwrapFlag(err error) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		return fmt.Errorf("invalid value %q: %w", bad.GetValue(), bad.Unwrap())
	}
	return err
}

// readConfig reads the file into values by flag name. A key that is no flag is a fault.
func readConfig(flags *pflag.FlagSet, path string) (map[string]string, []error) {
	values := map[string]string{}
	if path == "" {
		return values, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{fmt.Errorf("configuration: %w", err)}
	}
	var raw map[string]any
	if err := toml.Unmarshal(b, &raw); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, col := at.Position()
			return nil, []error{fmt.Errorf("%s:%d:%d: %w", path, line, col, err)}
		}
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	byKey := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) { byKey[keyName(f.Name)] = f.Name })
	var errs []error
	keys := make([]string, 0, len(raw))
	for k := range raw {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		name, known := byKey[k]
		if !known || name == "config" || name == "help" {
			errs = append(errs, fmt.Errorf("%s: unknown key %q", path, k))
			continue
		}
		v, err := scalarText(raw[k])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", path, k, err))
			continue
		}
		values[name] = v
	}
	return values, errs
}

// scalarText turns a TOML value into what the flag of the same name would be given.
func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64, bool:
		return fmt.Sprint(v), nil
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok || strings.Contains(s, ",") {
				return "", errors.New("an array holds strings without commas")
			}
			parts[i] = s
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("want a string, a whole number, a boolean or an array of strings")
}
