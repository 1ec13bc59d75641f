package intl

// symbols are the currencies that US English does not write by their code.
var symbols = map[string]string{
	"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "CNY": "CN¥", "KRW": "₩", "BRL": "R$", "CAD": "CA$", "AUD": "A$", "MXN": "MX$",
	"NZD": "NZ$", "HKD": "HK$", "ILS": "₪", "VND": "₫", "TWD": "NT$", "PHP": "₱", "XAF": "FCFA", "XCD": "EC$", "XOF": "F\u202fCFA", "XPF": "CFPF",
}

// narrow are shorter ones, for the currencies above that have one.
var narrow = map[string]string{
	"CNY": "¥", "CAD": "$", "AUD": "$", "MXN": "$", "NZD": "$", "HKD": "$", "TWD": "$", "XCD": "$",
}

// CurrencyDigits returns how many digits behind the point a currency has (ISO 4217).
func CurrencyDigits(code string) int {
	switch code {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	}
	return 2
}

// currencySymbol returns how a currency is written, and whether a space belongs behind it.
func currencySymbol(code, display string) (symbol string, space bool) {
	if display == "narrowSymbol" {
		if s, ok := narrow[code]; ok {
			return s, false
		}
		display = "symbol"
	}
	if s, ok := symbols[code]; ok && display == "symbol" {
		last := s[len(s)-1]
		return s, last >= 'A' && last <= 'Z'
	}
	return code, true
}
