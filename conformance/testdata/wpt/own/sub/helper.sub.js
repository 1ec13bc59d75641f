'use strict';
const place = "{{host}}:{{ports[http][0]}}";
class Box { constructor(value) { this.value = value; } }
function boxed(value) { return new Box(value).value; }
