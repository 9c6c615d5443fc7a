import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describeApi, type OpenApiOperation } from "../../api/contract/openapi.ts";
import { operations } from "../../api/routes.ts";

/** The published API contract, except that responses may not have members that it does not describe. */
export const contract = describeApi(operations, { publicUrl: "https://pay.example.test", closed: true });

const ajv = new Ajv2020({ strict: false, allErrors: true });
(formats as unknown as (ajv: Ajv2020) => void)(ajv);
ajv.addSchema(contract, "contract");
const compiled = new Map<string, ValidateFunction>();

const paths = Object.entries(contract.paths).map(([path, methods]) => ({
  path,
  methods,
  // Fixed segments take precedence over parameters, as in the router.
  rank: path.split("{").length,
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}/*$`),
}));

/** Returns the contract's operation for a request, if there is one. */
export function findOperation(method: string, url: string): (OpenApiOperation & { path: string }) | undefined {
  const [path = ""] = url.replaceAll(/\/+/g, "/").split("?", 1);
  const found = paths.toSorted((a, b) => a.rank - b.rank).find(({ pattern }) => pattern.test(path));
  const operation = found?.methods[method.toLowerCase()];
  return found && operation && { ...operation, path: found.path };
}

/** Throws when a response does not conform to the contract. */
export function checkAnswer(method: string, url: string, { status, body }: { status: number; body: unknown }): void {
  if (!url.startsWith("/v1/") && status < 400) return;
  const operation = findOperation(method, url);
  const place = `${method} ${operation?.path ?? url.split("?", 1)[0]} ${status}`;
  const where =
    operation && `#/paths/${operation.path.replaceAll("/", "~1")}/${method.toLowerCase()}/responses/${status}`;
  if (operation && !operation.responses[status]) throw new Error(`${place}: the contract does not list this status`);
  const pointer = where ? `${where}/content/application~1json/schema` : "#/components/schemas/ErrorResponse";
  const ref = `contract${pointer.replaceAll("{", "%7B").replaceAll("}", "%7D")}`;
  const validate = compiled.get(ref) ?? ajv.compile({ $ref: ref });
  compiled.set(ref, validate);
  if (!validate(body)) throw new Error(`${place}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`);
}
