// The guard `request-no-cors` (Fetch): headers of such a request hold only what a form could send, too. It is the one
// guard beside `immutable`, since it follows from what the program itself asks for.

const headersNoCors = 'no-cors'; // as headersFrozen
const guardNames = ['accept', 'accept-language', 'content-language', 'content-type'];
const guardTypes = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];
const guardLanguage = /^[0-9A-Za-z *,\-.;=]*$/;
const guardUnsafe = /[\0-\x08\x0a-\x1f"():<>?@[\\\]{}\x7f]/;

// Whether a field, by its lower-case name and whole value, is a no-CORS-safelisted request-header.
function guardSafe(name, value) {
  if (!guardNames.includes(name) || value.length > 128) return false;
  if (name === 'accept-language' || name === 'content-language') return guardLanguage.test(value);
  if (guardUnsafe.test(value)) return false;
  return name === 'accept' || guardTypes.includes(host.mimeType(value)?.[1]);
}

// Appends a field if the guard lets it pass.
function guardAppend(list, name, value) {
  const before = headersJoined(list, name);
  if (guardSafe(name, before === null ? value : `${before}, ${value}`)) list.push(name, value);
}

// What of a list the guard lets pass.
function guardFilter(list) {
  const kept = [];
  for (let i = 0; i < list.length; i += 2) guardAppend(kept, list[i], list[i + 1]);
  return kept;
}
