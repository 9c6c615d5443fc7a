import { describe, expect, test } from "vitest";
import { describeApi } from "../../../../api/contract/openapi.ts";
import type { Operation } from "../../../../api/contract/operation.ts";
import { parseInput } from "../../../../api/http/parse-input.ts";
import { operations } from "../../../../api/routes.ts";

/** The calls of merchants that terminals and published clients make too. */
const ofTerminals = [
  "createPayment",
  "createMerchantPayment",
  "getPaymentStatus",
  "getMerchantPaymentStatus",
  "cancelPayment",
];
const isTolerant = ({ access, name }: Operation) => access === "gateway" || ofTerminals.includes(name);
const ofMerchants = operations.filter((one) => !isTolerant(one));
const tolerant = operations.filter(isTolerant);
const document = describeApi(operations, { publicUrl: "https://pay.example.test" });

/** Returns the error of an input that has an unknown member beside whatever is missing; undefined when it has none. */
function read(schema: Operation["schemas"]["body"], input: object) {
  if (!schema) return undefined;
  const parsed = parseInput(schema, input, { whole: "input", code: "params_validation" });
  return parsed.ok ? undefined : parsed.message;
}

/** Returns every object of a schema that names its members, also those in components, by its place. */
function listObjects(node: unknown, place: string, found: Map<string, object>): Map<string, object> {
  if (typeof node !== "object" || node === null) return found;
  if ("$ref" in node) {
    const name = String(node.$ref).split("/").at(-1) ?? "";
    return found.has(name) ? found : listObjects(document.components.schemas[name], name, found);
  }
  if ("properties" in node) found.set(place, node);
  for (const [name, value] of Object.entries(node)) listObjects(value, `${place}.${name}`, found);
  return found;
}
const bodyOf = (name: string) =>
  Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .find(({ operationId }) => operationId === name)?.requestBody?.content["application/json"].schema;

describe("an unknown member", () => {
  test.each(ofMerchants.map(({ name, schemas }) => [name, schemas]))(
    "%s refuses an unknown query parameter and an unknown member of the body by name",
    (_name, { query, body }) => {
      expect(read(query, { "status[]": "x" })).toContain("status[]: is not known");
      if (body) expect(read(body, { ammount: 1 })).toContain("ammount: is not known");
    },
  );

  test("the document closes every object of a merchant's body, except an amount, which a client may send as it has received it", () => {
    const objects = new Map<string, object>();
    for (const { name } of ofMerchants) listObjects(bodyOf(name), name, objects);
    const open = [...objects].filter(([, one]) => !("additionalProperties" in one)).map(([place]) => place);
    expect(objects.size).toBeGreaterThan(15);
    expect(open).toEqual(["RequestedAmount"]);
  });

  test.each(tolerant.map(({ name, schemas }) => [name, schemas]))(
    "%s ignores unknown parameters and members, because wallets and terminals send some",
    (_name, { query, body }) => {
      expect(read(query, { nope: "x" }) ?? "").not.toContain("nope");
      expect(read(body, { nope: 1 }) ?? "").not.toContain("nope");
    },
  );

  test("each of several unknown members is named, up to five and without their values", () => {
    const update = ofMerchants.find(({ name }) => name === "updateMerchant");
    const many = Object.fromEntries(["a", "b", "c", "d", "e", "f", "g"].map((name) => [name, "secret"]));
    expect(read(update?.schemas.body, many)).toBe(
      ["a", "b", "c", "d", "e"].map((one) => `${one}: is not known`).join("; "),
    );
    const add = ofMerchants.find(({ name }) => name === "createCryptoSettlements");
    const settlement = { asset: "x", destination: "y", label: "z" };
    expect(read(add?.schemas.body, { settlements: [settlement] })).toBe("settlements.0.label: is not known");
  });
});
