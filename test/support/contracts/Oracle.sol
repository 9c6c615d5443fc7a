// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A sanctions oracle like Chainalysis's, which can be made to revert.
contract Oracle {
    mapping(address => bool) private sanctioned;
    bool private silent;

    function name_(address account, bool is_) external {
        sanctioned[account] = is_;
    }

    function silence(bool on) external {
        silent = on;
    }

    function isSanctioned(address account) external view returns (bool) {
        require(!silent, "no answer");
        return sanctioned[account];
    }
}
