import { readFileSync } from "node:fs";
import { readPreflightConfig } from "../../runtime/config.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { parseScreeningList } from "../../runtime/screening-list.ts";
import type { PreflightDeps } from "./family.ts";
import { countOf, failure, type Outcome, ok, warning } from "./finding.ts";
import { openFamily } from "./open-family.ts";
import type { Check } from "./run-checks.ts";

const name = "screening list";

/** Checks the operator's list of accounts that are not served (SCREENING_LIST_FILE). */
export function screeningListCheck(deps: PreflightDeps): Check {
  const { env, networks } = deps;
  return {
    name,
    async run() {
      const file = readPreflightConfig(env).SCREENING_LIST_FILE;
      if (file !== undefined) return [readList(file)];
      if (networks.chains.every((network) => openFamily(deps, network).hasOracle))
        return [ok(name, "not set; every chain has an oracle")];
      return [
        warning(
          name,
          "no list is set, and some chains have no oracle",
          "Set SCREENING_LIST_FILE, or screening.oracle of each chain, unless the service may serve every payer.",
        ),
      ];
    },
  };
}

function readList(file: string): Outcome {
  const remedy = "Correct the file of SCREENING_LIST_FILE: payments are held while it is invalid.";
  try {
    const list = parseScreeningList(readFileSync(file, "utf8"));
    if ("error" in list) return failure(name, `it ${list.error}`, remedy);
    return ok(name, `it lists ${countOf(list.accounts.size, "account")}`);
  } catch (error) {
    return failure(name, `it cannot be read (${errorCode(error) ?? "unknown"})`, remedy);
  }
}
