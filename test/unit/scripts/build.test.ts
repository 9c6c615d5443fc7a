import { expect, test } from "vitest";
import { toSource } from "../../../scripts/build.ts";

test("the constants of a build have the values of the modules that it evaluates", async () => {
  const values = { 'a "name"': ["text\n`$\u2028", []], bytes: Buffer.from([0, 255, 10]), empty: {} };
  const source = `export default ${toSource(values)}`;
  const { default: read } = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);
  expect(read).toEqual(values);
});

test.each([[1n], [() => 1], [new Date(0)], [undefined], [null], [new Uint8Array(1)]])(
  "a build fails on a value that it cannot write as a constant: %s",
  (value) => {
    expect(() => toSource({ value: [value] })).toThrow("a build cannot contain this value");
  },
);
