// Databases (sql §2). Values are tagged objects (sql §3); their shape is checked by the host, their types and counts here.

const sqlStringify = JSON.stringify;

function sqlText(value) { return facadeString('the statement', value); }

// The parameters as the host takes them. Members are copied by hand: a toJSON or a getter would speak for the value.
function sqlParams(params) {
  if (params === undefined) return [];
  if (!queueIsArray(params)) throw new TypeError('the parameters are not an array');
  if (params.length > 100) throw new TypeError('a statement has at most 100 parameters');
  const list = [];
  for (let i = 0; i < params.length; i++) list[i] = sqlValue(params[i]);
  return list;
}

const sqlMembers = { __proto__: null, null: [], integer: ['value', 'string'], real: ['value', 'number'], text: ['value', 'string'], blob: ['base64', 'string'] };

function sqlValue(value) {
  const given = facadeOptions('a parameter', value === undefined ? null : value, ['type', 'value', 'base64']);
  const type = typeof given.type === 'string' ? given.type : '';
  const member = sqlMembers[type];
  if (member === undefined) throw new TypeError('a parameter is not a tagged value');
  const count = idlOwnKeys(given).length;
  if (member.length === 0) {
    if (count !== 1) throw new TypeError('a null has no other member');
    return { __proto__: null, type };
  }
  const content = given[member[0]];
  if (count !== 2 || typeof content !== member[1]) throw new TypeError(`a parameter of type ${type} has a ${member[1]} as ${member[0]}`);
  if (type === 'real' && !(content - content === 0)) throw facadeNamed('numeric_out_of_range', 'a real is not finite');
  return { __proto__: null, type, [member[0]]: type === 'text' ? content.toWellFormed() : content };
}

facadeClass('sql', 'SQLDatabase', {
  execute: (number, sql, params) => (host.sqlRun(number, 0, sqlText(sql), sqlStringify(sqlParams(params)))),
  query: (number, sql, params) => (host.sqlRun(number, 1, sqlText(sql), sqlStringify(sqlParams(params)))),

  transaction(number, statements) {
    if (!queueIsArray(statements) || statements.length < 1 || statements.length > 100) {
      throw new TypeError('transaction: the statements are not an array of 1 to 100');
    }
    const list = [];
    for (let i = 0; i < statements.length; i++) {
      const { sql, params } = facadeOptions('transaction', statements[i] === undefined ? null : statements[i], ['sql', 'params']);
      list[i] = { __proto__: null, sql: sqlText(sql), params: sqlParams(params) };
    }
    return (host.sqlRun(number, 2, '', sqlStringify(list)));
  },
}, { execute: [1, 2], query: [1, 2], transaction: [1, 1] });
