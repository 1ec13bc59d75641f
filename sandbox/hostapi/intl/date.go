package intl

import (
	"fmt"
	"strconv"
	"time"
)

// DateOptions are resolved options of Intl.DateTimeFormat, by their names there; what is "" is not shown.
type DateOptions struct {
	Weekday      string `json:"weekday"` // long, short, narrow
	Year         string `json:"year"`    // numeric, 2-digit
	Month        string `json:"month"`   // numeric, 2-digit, long, short, narrow
	Day          string `json:"day"`     // numeric, 2-digit
	Hour         string `json:"hour"`
	Minute       string `json:"minute"`
	Second       string `json:"second"`
	Fraction     int    `json:"fractionalSecondDigits"` // 0 to 3
	HourCycle    string `json:"hourCycle"`              // h11, h12, h23, h24
	TimeZone     string `json:"timeZone"`
	TimeZoneName string `json:"timeZoneName"` // short, long
	DateStyle    string `json:"dateStyle"`    // full, long, medium, short: instead of the components
	TimeStyle    string `json:"timeStyle"`
}

// maxTime is the most, in milliseconds either way, that a Date of JavaScript holds.
const maxTime = 8.64e15

// Date formats a time in milliseconds since 1970. False for a time or zone that there is not.
func Date(ms float64, o DateOptions) (parts []Part, ok bool) {
	zone, minutes, ok := Zone(o.TimeZone)
	if !ok || !(ms >= -maxTime && ms <= maxTime) {
		return nil, false
	}
	t := time.UnixMilli(int64(ms)).UTC().Add(time.Duration(minutes) * time.Minute)
	o.applyStyles()
	date, clock := o.date(t), o.clock(t)
	if o.TimeZoneName != "" {
		name := Part{"timeZoneName", zoneName(zone, minutes, o.TimeZoneName)}
		switch {
		case clock != nil:
			clock = append(clock, Part{"literal", " "}, name)
		case date != nil:
			date = append(date, Part{"literal", ", "}, name)
		default:
			return []Part{name}, true
		}
	}
	if date != nil && clock != nil {
		between := ", "
		if o.Month == "long" {
			between = " at "
		}
		date = append(date, Part{"literal", between})
	}
	return append(date, clock...), true
}

func (o *DateOptions) applyStyles() {
	switch o.DateStyle {
	case "full":
		o.Weekday, o.Month, o.Day, o.Year = "long", "long", "numeric", "numeric"
	case "long":
		o.Month, o.Day, o.Year = "long", "numeric", "numeric"
	case "medium":
		o.Month, o.Day, o.Year = "short", "numeric", "numeric"
	case "short":
		o.Month, o.Day, o.Year = "numeric", "numeric", "2-digit"
	}
	if o.TimeStyle != "" {
		o.Hour, o.Minute = "numeric", "2-digit"
		if o.TimeStyle != "short" {
			o.Second = "2-digit"
		}
		switch o.TimeStyle {
		case "full":
			o.TimeZoneName = "long"
		case "long":
			o.TimeZoneName = "short"
		}
	}
}

// number writes n in one of the two numeric styles.
func number(n int, style string) string {
	if style == "2-digit" {
		return fmt.Sprintf("%02d", n%100)
	}
	return strconv.Itoa(n)
}

// date writes the day: 1/2/2020, or January 2, 2020.
func (o *DateOptions) date(t time.Time) (parts []Part) {
	numeric := o.Month == "numeric" || o.Month == "2-digit" || o.Month == ""
	add := func(between string, p Part) {
		if len(parts) > 0 {
			parts = append(parts, Part{"literal", between})
		}
		parts = append(parts, p)
	}
	if o.Weekday != "" {
		add("", Part{"weekday", cut(t.Weekday().String(), o.Weekday)})
	}
	between := ", "
	if o.Month != "" {
		value := number(int(t.Month()), o.Month)
		if !numeric {
			value = cut(t.Month().String(), o.Month)
		}
		add(between, Part{"month", value})
		if between = " "; numeric {
			between = "/"
		}
	}
	if o.Day != "" {
		if o.Month == "" && o.Weekday != "" {
			return append([]Part{{"day", number(t.Day(), o.Day)}, {"literal", " "}}, parts...)
		}
		add(between, Part{"day", number(t.Day(), o.Day)})
		if !numeric {
			between = ", "
		}
	}
	if o.Year != "" {
		year := t.Year()
		if year <= 0 && o.Year != "2-digit" {
			year = 1 - year // before Christ: the era is not shown
		}
		add(between, Part{"year", number(max(year, -year), o.Year)})
	}
	return parts
}

func cut(name, style string) string {
	switch style {
	case "short":
		return name[:3]
	case "narrow":
		return name[:1]
	}
	return name
}

// clock writes the time of day: 3:04:05 PM.
func (o *DateOptions) clock(t time.Time) (parts []Part) {
	add := func(between, kind, value string) {
		if len(parts) > 0 {
			parts = append(parts, Part{"literal", between})
		}
		parts = append(parts, Part{kind, value})
	}
	twelve := o.HourCycle == "h12" || o.HourCycle == "h11"
	if o.Hour != "" {
		hour, style := t.Hour(), o.Hour
		switch {
		case o.HourCycle == "h11":
			hour %= 12
		case twelve:
			hour = (hour+11)%12 + 1
		case o.HourCycle == "h24" && hour == 0:
			hour = 24
		}
		if !twelve {
			style = "2-digit" // as US English writes a day of 24 hours
		}
		add("", "hour", number(hour, style))
	}
	if o.Minute != "" {
		style := o.Minute
		if o.Hour != "" || o.Second != "" {
			style = "2-digit"
		}
		add(":", "minute", number(t.Minute(), style))
	}
	if o.Second != "" {
		style := o.Second
		if o.Minute != "" {
			style = "2-digit"
		}
		add(":", "second", number(t.Second(), style))
	}
	if o.Fraction > 0 {
		add(".", "fractionalSecond", fmt.Sprintf("%03d", t.Nanosecond()/1e6)[:min(o.Fraction, 3)])
	}
	if o.Hour != "" && twelve {
		period := "AM"
		if t.Hour() >= 12 {
			period = "PM"
		}
		add(" ", "dayPeriod", period)
	}
	return parts
}
