package intl

import (
	"fmt"
	"strings"
)

// Zone returns the canonical name of a time zone and its distance from UTC in minutes; false unless it is UTC by one of
// its names or an offset such as +05:30, +0530 or +05.
func Zone(name string) (canonical string, minutes int, ok bool) {
	switch strings.ToLower(name) {
	case "utc", "etc/utc", "etc/gmt", "gmt", "etc/uct", "uct", "zulu", "etc/zulu", "universal", "etc/universal", "etc/gmt0", "etc/gmt+0", "etc/gmt-0",
		"etc/greenwich", "greenwich", "gmt0", "gmt+0", "gmt-0":
		return "UTC", 0, true
	}
	if len(name) < 3 || name[0] != '+' && name[0] != '-' {
		return "", 0, false
	}
	digits := name[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) == 2 {
		digits += "00"
	}
	if len(digits) != 4 || strings.Trim(digits, "0123456789") != "" {
		return "", 0, false
	}
	h, m := int(digits[0]-'0')*10+int(digits[1]-'0'), int(digits[2]-'0')*10+int(digits[3]-'0')
	if h > 23 || m > 59 {
		return "", 0, false
	}
	minutes = h*60 + m
	sign := byte('+')
	if name[0] == '-' && minutes > 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Sprintf("%c%02d:%02d", sign, h, m), minutes, true
}

// zoneName is how a zone is written behind a time.
func zoneName(canonical string, minutes int, style string) string {
	if canonical == "UTC" {
		if style == "long" {
			return "Coordinated Universal Time"
		}
		return "UTC"
	}
	if minutes == 0 {
		return "GMT"
	}
	sign := '+'
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	switch {
	case style == "long":
		return fmt.Sprintf("GMT%c%02d:%02d", sign, minutes/60, minutes%60)
	case minutes%60 != 0:
		return fmt.Sprintf("GMT%c%d:%02d", sign, minutes/60, minutes%60)
	}
	return fmt.Sprintf("GMT%c%d", sign, minutes/60)
}
