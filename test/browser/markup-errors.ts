import { CspEvaluator } from "csp_evaluator/dist/evaluator.js";
import { Severity } from "csp_evaluator/dist/finding.js";
import { CspParser } from "csp_evaluator/dist/parser.js";
import { HtmlValidate } from "html-validate";

const validator = new HtmlValidate({
  root: true,
  extends: ["html-validate:standard", "html-validate:a11y"],
});

/** Returns the HTML and accessibility errors in the markup of a page. */
export async function findMarkupErrors(markup: string): Promise<string[]> {
  const { results } = await validator.validateString(markup);
  return results.flatMap(({ messages }) =>
    messages.map(
      ({ ruleId, message, line, column, selector }) => `${ruleId} ${selector ?? `${line}:${column}`}: ${message}`,
    ),
  );
}

/** Returns the definite findings of csp_evaluator; its possible findings depend on the files under our own paths. */
export const findPolicyWeaknesses = (policy: string): string[] =>
  new CspEvaluator(new CspParser(policy).csp)
    .evaluate()
    .filter(({ severity }) => severity < Severity.HIGH_MAYBE)
    .map(({ directive, value, description }) => `${directive} ${value ?? ""}: ${description}`);
