"""One file per verb: from annotations to certified decisions, through the folder of a run."""
